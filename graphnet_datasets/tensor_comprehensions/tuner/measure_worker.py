"""Worker process that runs candidates, each in a fork, on inputs read from files."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...isolation import Reporter
from ..codegen.program import ENTRY

LEAST_RUNS = 3
BLOCK = 1 << 16
"""Number of elements compared at a time."""


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:  # noqa: ARG001
    """Load a candidate, compare its outputs with the expected outputs, and time it."""
    arrays, outputs = [], []
    for entry in payload["tensors"]:
        if entry["role"] == "input":
            arrays.append(_strided(np.load(entry["file"], allow_pickle=False), entry["strides"]))
        else:
            array = np.zeros(entry["shape"], entry["dtype"])
            if entry["file"]:
                array[...] = np.load(entry["file"], allow_pickle=False)
            arrays.append(array)
            if entry["role"] == "output":
                outputs.append((entry, array))
    run_ms = loaded(payload["object"], arrays, payload["threads"])
    measure(payload, reporter, run_ms, lambda: outputs)


def measure(
    payload: dict[str, Any],
    reporter: Reporter,
    run_ms: Callable[[], float],
    read: Callable[[], Sequence[tuple[dict[str, Any], Any]]],
) -> None:
    """Check a candidate after its first run, time further runs, and report.

    Args:
        run_ms: run the candidate once and return its time.
        read: return the description and the contents of each output.
    """
    reporter.enter("run")
    first_ms = run_ms()
    reporter.enter("check")
    for entry, array in read():
        expected = np.load(entry["wanted"], mmap_mode="r", allow_pickle=False)
        error = difference(array, expected, entry["dtype"])
        if not error <= entry["tolerance"]:
            reporter.send(
                {"error": f"The output `{entry['name']}` differs by {error:.3g} of its scale."}
            )
            return
    reporter.enter("time")
    if first_ms > payload["limit_ms"]:
        # Repeat once: threads may have started, or another process may have used the processor.
        first_ms = min(first_ms, run_ms())
    if first_ms > payload["limit_ms"]:
        reporter.send({"error": f"The first run took {first_ms:.3g} ms, far more than the best."})
        return
    times, is_slow = [], first_ms > payload["budget_ms"] / 10
    for _ in range(0 if is_slow else payload["num_warm_up"]):
        run_ms()
    start = time.perf_counter()
    for run in range(payload["num_runs"]):
        spent_ms = (time.perf_counter() - start) * 1e3
        if run >= LEAST_RUNS and spent_ms > payload["budget_ms"]:
            break
        times.append(run_ms())
    reporter.send({"times_ms": times})


def loaded(path: str, arrays: Sequence[Any], threads: int) -> Callable[[], float]:
    """Return a function that runs a kernel on arrays and returns the time in milliseconds."""
    function = getattr(ctypes.CDLL(path), ENTRY)
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_long], None
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))

    def run_ms() -> float:
        start = time.perf_counter()
        function(pointers, threads)
        return (time.perf_counter() - start) * 1e3

    return run_ms


def _strided(array: Any, strides: list[int]) -> Any:
    """Return the array in memory with the given strides (in elements)."""
    if array.size == 0 or list(array.strides) == [stride * array.itemsize for stride in strides]:
        return array
    extent = 1 + sum((size - 1) * step for size, step in zip(array.shape, strides, strict=True))
    memory = np.zeros(extent, array.dtype)
    view = np.lib.stride_tricks.as_strided(
        memory, array.shape, [stride * array.itemsize for stride in strides]
    )
    view[...] = array
    return view


def difference(array: Any, expected: Any, dtype: str) -> float:
    """Return the largest difference relative to the largest finite expected value.

    Infinities and NaNs must be in the expected positions; integers must be equal. The arrays are
    compared in blocks that fit in a cache.
    """
    array, expected = array.reshape(-1), expected.reshape(-1)
    scale, largest = 1e-30, 0.0
    for start in range(0, array.size, BLOCK):
        got, want = array[start : start + BLOCK], expected[start : start + BLOCK]
        if dtype == "uint16":  # bfloat16
            got = (got.astype(np.uint32) << 16).view(np.float32)
        if got.dtype.kind != "f":
            if not np.array_equal(got, want.astype(got.dtype)):
                return float("inf")
            continue
        got, want = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(want)
        if not finite.all():
            if not np.array_equal(
                np.nan_to_num(got[~finite], nan=7.0), np.nan_to_num(want[~finite], nan=7.0)
            ):
                return float("inf")
            got, want = got[finite], want[finite]
        if got.size:
            scale = max(scale, float(np.abs(want).max()))
            error = float(np.abs(got - want).max())
            largest = max(largest, math.inf if math.isnan(error) else error)
    return largest / scale
