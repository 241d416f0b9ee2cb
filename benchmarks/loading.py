"""Size of the table, and what it costs to write, load and read it.

    python benchmarks/loading.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per figure: of a table of the given samples, beside reading the same samples
from their directories, and of the embedded dataset. Caches are empty at the start of each load that
is called the first. CPU time stands beside wall time, since a busy machine does not change it.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

# `datasets` reads where its cache lies when it is imported.
_CACHE = tempfile.TemporaryDirectory(prefix="graphnet-benchmark-")
os.environ.update(HF_HOME=_CACHE.name, HF_DATASETS_DISABLE_PROGRESS_BARS="1")

import datasets.config  # noqa: E402 - after the environment is set

from graphnet_datasets import Sample, load_dataset, read_directory, write_table  # noqa: E402
from graphnet_datasets.storage.loading import STARTER  # noqa: E402

ARCHIVE = Path(__file__).parents[2] / "shared/data/graphnet-upstream-subset.tar.xz"


class Took(NamedTuple):
    """What a call took, in seconds: on the wall, and of the processor."""

    wall: float
    cpu: float


def report(figure: str, value: float, unit: str, **more: Any) -> None:
    print(json.dumps({"figure": figure, "value": round(value, 4), "unit": unit, **more}))


def report_time(figure: str, took: Took, **more: Any) -> None:
    report(figure, took.wall, "s", cpu_s=round(took.cpu, 4), **more)


def timed(function: Callable[[], Any]) -> tuple[Took, Any]:
    start, start_cpu = time.perf_counter(), time.process_time()
    result = function()
    return Took(time.perf_counter() - start, time.process_time() - start_cpu), result


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """Let `datasets` cache into a new directory."""
    with tempfile.TemporaryDirectory(prefix="graphnet-benchmark-") as cache:
        before = datasets.config.HF_DATASETS_CACHE
        datasets.config.HF_DATASETS_CACHE = Path(cache)
        try:
            yield
        finally:
            datasets.config.HF_DATASETS_CACHE = before


def measure_loading(name: str, place: str | Path) -> None:
    """Report what it takes to load a table and to turn its rows into samples."""
    with empty_cache():
        first, rows = timed(lambda: load_dataset(place, split="train"))
        report_time(f"{name}: load, first", first, graphs=len(rows))
        report_time(
            f"{name}: load, cached",
            min(timed(lambda: load_dataset(place, split="train"))[0] for _ in range(3)),
        )
        small, found = timed(
            lambda: load_dataset(place, filters=[("num_ops", "<", 200)], split="train")
        )
        report_time(f"{name}: load, fewer than 200 operators", small, graphs=len(found))
        # The first stream of a process imports torch.
        streams = [
            timed(
                lambda: list(
                    load_dataset(place, streaming=True, columns=["id", "num_ops"], split="train")
                )
            )[0]
            for _ in range(2)
        ]
        report_time(f"{name}: stream two columns", min(streams))
        items, samples = [], []
        for index in range(len(rows)):
            took, row = timed(lambda index=index: rows[index])
            items.append(took)
            took, _ = timed(lambda row=row: Sample.from_row(row))
            samples.append(took)
        for what, times in (("row", items), ("row to sample", samples)):
            wall, cpu = ([took[clock] * 1e3 for took in times] for clock in (0, 1))
            report(
                f"{name}: {what}",
                statistics.median(wall),
                "ms",
                p95=round(statistics.quantiles(wall, n=20)[-1], 3),
                cpu_ms=round(statistics.median(cpu), 3),
                cpu_p95=round(statistics.quantiles(cpu, n=20)[-1], 3),
            )


def make_table(path: Path, out: Path) -> None:
    """Write a table of the samples at `path`, and report what that takes."""
    with tempfile.TemporaryDirectory() as temporary:
        root = path
        if path.is_file():
            root = Path(temporary)
            with tarfile.open(path) as archive:
                archive.extractall(root, filter="data")
        directories = sorted({each.parent for each in root.rglob("graph_net.json")})
        text = sum(each.stat().st_size for root in directories for each in root.iterdir())
        report("directories: size", text, "bytes")
        took, samples = timed(
            lambda: [sample for each in directories for sample in read_directory(each)]
        )
        report_time("directories: read", took, samples=len(samples))
        took, _ = timed(lambda: write_table(samples, out))
        report_time("table: write, hashes included", took)
        report("table: size", out.stat().st_size, "bytes", ratio=round(text / out.stat().st_size))


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ARCHIVE
    if path.exists():
        out = Path(_CACHE.name) / "graphs.parquet"
        make_table(path, out)
        measure_loading("table", out)
    else:
        print(f"`{path}` is not here; only the embedded dataset is measured.", file=sys.stderr)
    size = sum(each.stat().st_size for each in STARTER.rglob("*") if each.is_file())
    report("embedded: size", size, "bytes")
    measure_loading("embedded", "graphnet")


if __name__ == "__main__":
    main()
