"""Time to turn a sample into something that runs.

    python benchmarks/materialize.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per step: milliseconds of CPU time per sample, median, 95th percentile and
largest, over all torch samples. `shapes` is the walk on fake tensors that checks the memory limit,
`graph` all the rest (look-up, checks, `torch.fx`), `materialize` both: what the first call costs.
A sample that was walked before pays for `graph` alone. Weights are arguments here; making weights
is the business of `benchmarks/inputs.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import defaultdict

import torch
from import_directories import folders_of, open_samples

from graphnet_datasets import Sample, materialize, read_directory
from graphnet_datasets.frameworks.torch.shapes import check_memory


def main() -> None:
    """Materialize every sample once, after one that pays for imports and caches."""
    torch.set_num_threads(1)
    with open_samples(sys.argv[1:]) as root:
        samples = [
            sample for folder in folders_of(root / "samples") for sample in read_directory(folder)
        ]
    materialize(samples[0])
    times_ms: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        _measure(sample, times_ms)
    for step, times in times_ms.items():
        figures = {
            "benchmark": "materialize",
            "step": step,
            "samples": len(times),
            "median_ms": round(statistics.median(times), 1),
            "p95_ms": round(statistics.quantiles(times, n=20)[-1], 1),
            "max_ms": round(max(times), 1),
            "median_us_per_op": round(
                statistics.median(
                    1e3 * time / max(1, sample.num_ops)
                    for time, sample in zip(times, samples, strict=True)
                ),
                1,
            ),
        }
        print(json.dumps(figures), flush=True)


def _measure(sample: Sample, times_ms: dict[str, list[float]]) -> None:
    # A limit above every sample's size: the largest needs more memory than some machines have.
    limit = 2**50
    start = time.process_time()
    check_memory(sample, limit)
    walked = time.process_time()
    materialize(sample, memory_limit_bytes=limit)
    end = time.process_time()
    for step, duration in (
        ("shapes", walked - start),
        ("graph", end - walked),
        ("materialize", end - start),
    ):
        times_ms[step].append(duration * 1e3)


if __name__ == "__main__":
    main()
