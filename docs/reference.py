"""Build the API reference out of the docstrings: `python docs/reference.py build/reference`.

It holds what the packages re-export, so the models' libraries and most compilers are not needed;
torch, and paddle where it is installed, are imported. A warning is an error: an annotation that
cannot be resolved, a name in `__all__` that is not there.
"""

from __future__ import annotations

import argparse
import html
import itertools
import warnings
from collections.abc import Iterable
from pathlib import Path

import pdoc
import pdoc.render

from graphnet_datasets.operators import FACTS, NAMESPACES, entries

PACKAGE = "graphnet_datasets"
PARTS = (
    "analysis", "benchmark", "compilers", "conversion", "directory", "errors", "frameworks", "hub",
    "inputs", "isolation", "operators", "report", "sample", "schema", "scores", "storage",
    "tensor_comprehensions", "timing", "transforms", "validation",
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
    (out / "operators.html").write_text(describe_operators(), encoding="utf-8")


def describe_operators() -> str:
    """Return a page with a table of operators for each family, and the meaning of their facts.

    >>> "<td>gelu</td>" in describe_operators()
    True
    """
    parts = ["<!doctype html>", "<meta charset='utf-8'>", "<title>Operators</title>"]
    parts += [
        "<h1>Operators</h1>",
        "<p>Each entry of <code>graphnet_datasets.operators</code>.</p>",
    ]
    by_family = sorted(entries().values(), key=lambda entry: (entry.family, entry.name))
    for family, members in itertools.groupby(by_family, key=lambda entry: entry.family):
        parts.append(f"<h2>{family.replace('_', ' ').capitalize()}</h2>")
        rows = (
            (
                entry.name,
                "checked" if "checked" in entry.facts else "",
                " ".join(f for f in entry.facts if f.rstrip("*_") in NAMESPACES),
                " ".join(
                    f"{fact}={value}" if value else fact
                    for fact, value in entry.facts.items()
                    if fact.rstrip("*_") not in {*NAMESPACES, "checked"}
                ),
            )
            for entry in members
        )
        parts += _table(("Operator", "Checked", "Namespaces", "Facts"), rows)
    parts += ["<h2>Facts</h2>", *_table(("Fact", "Meaning"), FACTS.items())]
    return "\n".join(parts) + "\n"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = ["<table>", "<tr>" + "".join(f"<th>{title}</th>" for title in header) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows]
    return [*lines, "</table>"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path("build/reference"))
    build(parser.parse_args().out)
