"""Time to read and to write GraphNet directories.

    python benchmarks/import_directories.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per step and framework: milliseconds of CPU time per sample, median, 95th
percentile and largest. `parse` reads the operators of a `model.py` of paddle, `metadata` reads
`weight_meta.py` by its line grammar, `metadata_ast` parses the same text by `ast` for comparison in
the same run, `import` is `read_directory` whole, `hashes` are those of a row, `export` is
`write_directory` with its check that what is printed reads back. The last lines are `graphnet
import` of one directory, which is what starting costs, and of everything, in as many processes as
there are processors: directories a second on the wall, CPU time of all processes, which a busy
machine changes less, and `two_cores_per_s`, what two idle cores would do at that CPU time.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from graphnet_datasets import read_directory, write_directory
from graphnet_datasets.analysis.hashes import all_hashes
from graphnet_datasets.frameworks.paddle.source import parse_graph
from graphnet_datasets.frameworks.tensor_metadata import parse_tensor_metadata

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


def measure_import(root: Path, name: str) -> None:
    """Import a tree by the command line, and report what that takes."""
    environment = {**os.environ, "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as target:
        out = Path(target) / "graphs"
        command = [
            sys.executable,
            "-m",
            "graphnet_datasets",
            "import",
            str(root),
            "--out",
            str(out),
        ]
        subprocess.run(  # noqa: S603 - this library
            command, check=True, env=environment, stdout=subprocess.DEVNULL
        )
        wall_s = time.perf_counter() - start
        outcomes = (out / "import-report.jsonl").read_text().splitlines()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = {
        "step": name,
        "directories": len(outcomes),
        "wall_s": round(wall_s, 2),
        "per_s": round(len(outcomes) / wall_s, 1),
        "cpu_s": round(cpu_s, 2),
        "two_cores_per_s": round(2 * len(outcomes) / cpu_s, 1),
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(figures), flush=True)


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
                timed("metadata", lambda text=text: parse_tensor_metadata(text))
                timed("metadata_ast", lambda text=text: ast.parse(text))
                [sample] = timed("import", lambda folder=folder: read_directory(folder))
                timed("hashes", lambda sample=sample: all_hashes(sample))
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
        shutil.copytree(folders_of(root)[0], Path(target) / "one" / "samples" / "first")
        measure_import(Path(target) / "one", "graphnet import, one directory")
        measure_import(root, "graphnet import, everything")


if __name__ == "__main__":
    main()
