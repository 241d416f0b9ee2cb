"""Time to fill the derived columns of a sample, and how much of it the formulas cover.

    python benchmarks/analysis.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per dataset and step, milliseconds of CPU time per torch sample: median, 95th
percentile and largest. `costs` is the walk on fake tensors with operations, traffic and memory
counted, `tags` tags and histogram, `walk` the propagation of shapes alone, made last, when torch's
caches know the shapes of the sample. The embedded dataset comes first; upstream's samples
where they are given or found. `coverage` is the share of operators that have a formula.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import datasets
import torch
from import_directories import folders_of, open_samples

from graphnet_datasets import Sample, load_dataset, read_directory
from graphnet_datasets.analysis.costs import measure_costs
from graphnet_datasets.analysis.tags import op_histogram, op_tags
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.torch.shapes import measure_footprint


def main() -> None:
    """Analyse every sample once, after one that pays for imports and caches."""
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    rows: Any = load_dataset("graphnet", "all", "all")
    embedded = [Sample.from_row(row) for row in rows if row["framework"] == "torch"]
    measure_costs(embedded[0])
    report("embedded", embedded)
    try:
        with open_samples(sys.argv[1:]) as root:
            report("upstream", read_samples(folders_of(root / "samples")))
    except (FileNotFoundError, SystemExit) as missing:
        print(f"upstream's samples are left out: {missing}", file=sys.stderr)


def read_samples(folders: Iterable[Any]) -> Iterator[Sample]:
    """Yield the samples of GraphNet directories."""
    for folder in folders:
        yield from read_directory(folder)


def report(name: str, samples: Iterable[Sample]) -> None:
    """Measure each sample and print a line per step, then one on coverage."""
    times_ms: dict[str, list[float]] = defaultdict(list)
    coverages: list[float] = []
    num_samples = num_ops = 0
    counted_ops = 0.0
    for sample in samples:
        num_samples += 1
        costs = timed(times_ms["costs"], lambda sample=sample: measure_costs(sample))
        timed(times_ms["tags"], lambda sample=sample: (op_tags(sample), op_histogram(sample)))
        try:
            timed(times_ms["walk"], lambda sample=sample: measure_footprint(sample))
        except GraphNetError:
            times_ms["walk"].pop()
        if costs is not None:
            coverages.append(costs.flops_coverage)
            num_ops += sample.num_ops
            counted_ops += costs.flops_coverage * sample.num_ops
    for step, times in times_ms.items():
        figures = {
            "benchmark": "analysis",
            "dataset": name,
            "step": step,
            "samples": len(times),
            "median_ms": round(statistics.median(times), 1),
            "p95_ms": round(statistics.quantiles(times, n=20)[-1], 1),
            "max_ms": round(max(times), 1),
        }
        print(json.dumps(figures), flush=True)
    figures = {
        "benchmark": "analysis",
        "dataset": name,
        "samples": num_samples,
        "with_costs": len(coverages),
        "fully_covered": sum(coverage == 1.0 for coverage in coverages),
        "coverage_of_operators": round(counted_ops / num_ops, 4),
        "lowest_coverage": round(min(coverages), 3),
    }
    print(json.dumps(figures), flush=True)


def timed(times_ms: list[float], call: Any) -> Any:
    """Call and note the milliseconds of CPU time, also of a call that raises."""
    start = time.process_time()
    try:
        return call()
    finally:
        times_ms.append(1e3 * (time.process_time() - start))


if __name__ == "__main__":
    main()
