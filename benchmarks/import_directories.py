"""Time to read and to write GraphNet directories.

    python benchmarks/import_directories.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per step and framework: milliseconds of CPU time per sample, median, 95th
percentile and largest. `parse` reads the operators of a `model.py` of paddle, `metadata` reads
`weight_meta.py` by its line grammar, `metadata_ast` parses the same text by `ast` for comparison in
the same run, `import` is `read_directory` whole, `export` is `write_directory` with its check that
what is printed reads back.
"""

from __future__ import annotations

import ast
import contextlib
import json
import statistics
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from graphnet_datasets import read_directory, write_directory
from graphnet_datasets.frameworks.metas import parse_metas
from graphnet_datasets.frameworks.paddle.source import parse_graph

ARCHIVE = Path(__file__).parents[2] / "shared/data/graphnet-upstream-subset.tar.xz"
Result = TypeVar("Result")


@contextlib.contextmanager
def open_samples(arguments: Sequence[str]) -> Iterator[Path]:
    """Give the folder that holds `samples` and `paddle_samples`, extracted if it is an archive."""
    source = Path(arguments[0]) if arguments else ARCHIVE
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def folders_of(root: Path) -> list[Path]:
    """Return the folders of all samples below a folder."""
    return sorted(path.parent for path in root.rglob("model.py"))


def main() -> None:
    """Read and write every sample once."""
    times_ms: dict[str, list[float]] = defaultdict(list)

    def timed(step: str, call: Callable[[], Result]) -> Result:
        start = time.process_time()
        result = call()
        times_ms[step].append((time.process_time() - start) * 1e3)
        return result

    with open_samples(sys.argv[1:]) as root, tempfile.TemporaryDirectory() as target:
        for framework, name in (("torch", "samples"), ("paddle", "paddle_samples")):
            times_ms.clear()
            for folder in folders_of(root / name):
                text = (folder / "weight_meta.py").read_text()
                if framework == "paddle":
                    model = (folder / "model.py").read_text()
                    timed("parse", lambda model=model: parse_graph(model))
                timed("metadata", lambda text=text: parse_metas(text))
                timed("metadata_ast", lambda text=text: ast.parse(text))
                [sample] = timed("import", lambda folder=folder: read_directory(folder))
                path = Path(target) / "sample"
                timed("export", lambda sample=sample, path=path: write_directory(sample, path))
            for step, all_times in times_ms.items():
                figures = {
                    "framework": framework,
                    "step": step,
                    "samples": len(all_times),
                    "median_ms": round(statistics.median(all_times), 2),
                    "p95_ms": round(statistics.quantiles(all_times, n=20)[-1], 2),
                    "largest_ms": round(max(all_times), 2),
                }
                print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
