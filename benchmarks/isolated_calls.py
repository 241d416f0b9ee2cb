"""The cost of a call of an isolated module, as a ratio to the same call in this process.

python benchmarks/isolated_calls.py
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from graphnet_datasets import load_dataset, make_inputs, materialize
from graphnet_datasets.sample import Sample

SAMPLES = ("torch_geometric/MLP", "torch/squeezenet-64", "torch/resnet-18")
CALLS = 20


def median_ms(call: Callable[[], object]) -> float:
    """Return the median time of a call in milliseconds, after one that is not counted."""
    call()
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main() -> None:
    """Print a JSON line for each sample."""
    for name in SAMPLES:
        (row,) = load_dataset("graphnet", "all", split="all", filters=[("id", "=", name)])
        sample = Sample.from_row(row)
        inputs = make_inputs(sample, weights="parameters")
        module = materialize(sample, weights="parameters")
        start = time.perf_counter()
        with materialize(sample, weights="parameters", isolated=True) as isolated:
            isolated(**inputs)
            first_s = time.perf_counter() - start
            here_ms = median_ms(lambda: module(**inputs))  # noqa: B023 - called at once
            there_ms = median_ms(lambda: isolated(**inputs))  # noqa: B023
        line = {
            "sample": name,
            "ratio": round(there_ms / here_ms, 2),
            "added_ms": round(there_ms - here_ms, 3),
            "first_call_s": round(first_s, 2),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
