"""Correctness at every t: one `min_t` against 16 x 4 calls of `torch.allclose`, same outputs.

    python benchmarks/correctness.py

The other tool's way is a call per (t, dtype) for 16 values of t and 4 dtypes. Prints one JSON
object per size and dtype, one thread, processor time; what is found at the 16 values of t is
checked to be the same. `all` is everything that a run's record holds of an output (errors, shares,
null controls).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from graphnet_datasets.benchmark.judging.correctness import Output, compare_outputs
from graphnet_datasets.scores.tolerance import min_t, tolerances

TOLERANCES = range(-10, 6)
DTYPES = ("float32", "float64", "float16", "bfloat16")
SIZES = (16_000, 1_000_000)
REPEATS = 3


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of the quickest call."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def allclose_at_all(actual: torch.Tensor, reference: torch.Tensor) -> dict[str, list[bool]]:
    """Return, per dtype whose tolerances are used, whether the outputs pass at each t."""
    found = {}
    for dtype in DTYPES:
        found[dtype] = []
        for t in TOLERANCES:
            atol, rtol = tolerances(t, dtype)
            close = torch.allclose(actual, reference, rtol=rtol, atol=atol, equal_nan=True)
            found[dtype].append(close)
    return found


def main() -> None:
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    for dtype in ("float32", "bfloat16"):
        for size in SIZES:
            reference = torch.from_numpy(generator.standard_normal(size)).to(getattr(torch, dtype))
            noise = 1e-2 if dtype == "bfloat16" else 1e-5
            actual = reference * (1 + noise * torch.from_numpy(generator.uniform(-1, 1, size)))
            actual = actual.to(reference.dtype)
            holder = torch.uint16 if dtype == "bfloat16" else reference.dtype
            x, r = actual.view(holder).numpy(), reference.view(holder).numpy()

            t = min_t(x, r, dtype)
            # A row of the table stores outputs in their dtype, so both sides are seen in float64.
            wide = allclose_at_all(actual.double(), reference.double())[dtype]
            assert wide == [t <= each for each in TOLERANCES]  # noqa: S101 - part of the claim

            ours = seconds(lambda x=x, r=r, dtype=dtype: min_t(x, r, dtype))
            rows = seconds(
                lambda x=x, r=r, dtype=dtype: compare_outputs(
                    [Output(dtype, r)], [Output(dtype, x)]
                )
            )
            theirs = seconds(lambda a=actual, b=reference: allclose_at_all(a, b))
            print(
                json.dumps(
                    {
                        "what": "correctness for all t",
                        "dtype": dtype,
                        "num_elements": size,
                        "min_t_ms": 1e3 * ours,
                        "all_ms": 1e3 * rows,
                        "allclose_64_calls_ms": 1e3 * theirs,
                        "times_faster": theirs / ours,
                        "all_times_faster": theirs / rows,
                    }
                )
            )


if __name__ == "__main__":
    main()
