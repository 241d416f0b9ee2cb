"""Build the API reference out of the docstrings: `python docs/reference.py build/reference`.

It holds what the packages re-export, so the models' libraries and most compilers are not needed;
torch, and paddle where it is installed, are imported. A warning is an error: an annotation that
cannot be resolved, a name in `__all__` that is not there.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import pdoc
import pdoc.render

PACKAGE = "graphnet_datasets"
PARTS = (
    "analysis", "benchmark", "compilers", "directory", "errors", "frameworks", "hub", "inputs",
    "isolation", "report", "sample", "schema", "scores", "storage", "tensor_comprehensions",
    "timing", "transforms", "validation",
)  # fmt: skip
PROCESSES = "!graphnet_datasets.storage.*(server|worker)"
"""What the programs of other processes do is nobody's to call."""


def build(out: Path) -> None:
    """Write the reference as HTML into a directory.

    Raises:
        UserWarning: something in it cannot be shown as it should be.
    """
    pdoc.render.configure(
        docformat="google", footer_text="GraphNet Datasets", show_source=False, search=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        # The constructor of a named tuple is in no module, so its annotations are not resolved.
        warnings.filterwarnings("ignore", "Error parsing type annotation ForwardRef", UserWarning)
        # Paddle says so when it is imported where no ccache is installed.
        warnings.filterwarnings("ignore", "No ccache found", UserWarning)
        names = [PACKAGE, *(f"{PACKAGE}.{part}" for part in PARTS)]
        pdoc.pdoc(*names, PROCESSES, output_directory=out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path("build/reference"))
    build(parser.parse_args().out)
