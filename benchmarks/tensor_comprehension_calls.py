"""What a call of a kernel costs beside the raw kernel: one JSON line per way of calling.

    python benchmarks/tensor_comprehension_calls.py

All ways compute the same eight elements, interleaved in one run; figures are medians of rounds, and
the difference between the quickest rounds, which other work on the machine disturbs least.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from graphnet_datasets.tensor_comprehensions import Options, define
from graphnet_datasets.tensor_comprehensions.torch_ops import as_torch_op

ROUNDS, CALLS = 40, 2000


def main() -> None:
    """Time each way in turn, round after round."""
    torch.set_num_threads(1)
    options = Options(threads=1)
    definition = define("def axpy(float a, float(N) X, float(N) Y) -> (Z) { Z(i) = a*X(i) + Y(i) }")
    tensors = (torch.tensor(2.0), torch.randn(8), torch.randn(8))
    arrays = tuple(each.numpy() for each in tensors)
    kernel = definition.compile("axpy", *tensors, options=options)
    of_arrays = definition.compile("axpy", *arrays, options=options)
    definition.axpy(*tensors)
    operator = as_torch_op("graphnet_benchmarks::axpy", definition, options=options)
    dispatched = torch.ops.graphnet_benchmarks.axpy
    out = torch.empty(8)
    addresses = [each.data_ptr() for each in (*tensors, out)]
    ways: dict[str, Callable[[], Any]] = {
        "raw": lambda: kernel.kernel.launch(addresses),
        "kernel": lambda: kernel(*tensors),
        "kernel, unchecked": lambda: kernel(*tensors, unchecked=True),
        "definition": lambda: definition.axpy(*tensors),
        "kernel of numpy": lambda: of_arrays(*arrays),
        "torch operator": lambda: operator(*tensors),
        "torch operator, dispatched": lambda: dispatched(*tensors),
        "torch eager": lambda: torch.add(tensors[2], tensors[1], alpha=2.0),
        "numpy eager": lambda: np.multiply(arrays[0], arrays[1]) + arrays[2],
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            times[name].append((time.perf_counter() - start) / CALLS * 1e6)
    raw = times["raw"]
    for name, found in times.items():
        figure = {
            "way": name,
            "call_us": round(statistics.median(found), 2),
            "over_raw_us": round(statistics.median(found) - statistics.median(raw), 2),
            "least_over_raw_us": round(min(found) - min(raw), 2),
        }
        print(json.dumps(figure))


if __name__ == "__main__":
    main()
