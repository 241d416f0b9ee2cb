"""Time to turn a sample into something that runs.

    python benchmarks/materialize.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per framework and step: milliseconds of CPU time per sample, median, 95th
percentile and largest. `shapes` is the walk by rules and on fake tensors (for paddle: in a program
that never runs) that checks the memory limit, `graph` the rest (look-up and checks), `materialize`
both: what it takes until there is something to call. `fx` is the graph and text of `torch.fx`,
which are made when a second call or a compiler asks for them. A sample of torch that was walked
before pays for `graph` alone.
Weights are arguments here; making weights is the business of `benchmarks/inputs.py`. Paddle is left
out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable

import torch
from import_directories import folders_of, open_samples

from graphnet_datasets import Sample, materialize, read_directory
from graphnet_datasets.frameworks.torch import shapes

CheckMemory = Callable[[Sample, int], object]


def main() -> None:
    """Materialize every sample once, after one that pays for imports and caches."""
    torch.set_num_threads(1)
    checks: dict[str, CheckMemory] = {"samples": shapes.check_memory}
    if importlib.util.find_spec("paddle") is not None:
        from graphnet_datasets.frameworks.paddle import shapes as paddle_shapes

        checks["paddle_samples"] = paddle_shapes.check_memory
    with open_samples(sys.argv[1:]) as root:
        for name, check_memory in checks.items():
            folders = folders_of(root / name)
            _report([each for folder in folders for each in read_directory(folder)], check_memory)


def _report(samples: list[Sample], check_memory: CheckMemory) -> None:
    materialize(min(samples, key=lambda sample: sample.input_bytes))
    times_ms: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        _measure(sample, check_memory, times_ms)
    for step, times in times_ms.items():
        figures = {
            "benchmark": "materialize",
            "framework": samples[0].framework,
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


def _measure(sample: Sample, check_memory: CheckMemory, times_ms: dict[str, list[float]]) -> None:
    # A limit above every sample's size: the largest needs more memory than some machines have.
    limit = 2**50
    start = time.process_time()
    check_memory(sample, limit)
    walked = time.process_time()
    module = materialize(sample, memory_limit_bytes=limit)
    end = time.process_time()
    if sample.framework == "torch":
        _ = module.graph
        times_ms["fx"].append((time.process_time() - end) * 1e3)
    walk, graph = walked - start, end - walked
    if sample.framework != "torch":  # which alone remembers that it walked
        graph -= walk
    for step, duration in (("shapes", walk), ("graph", graph), ("materialize", walk + graph)):
        times_ms[step].append(duration * 1e3)


if __name__ == "__main__":
    main()
