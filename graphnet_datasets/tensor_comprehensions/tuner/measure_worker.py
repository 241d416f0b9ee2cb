"""The process that runs candidates: each in a fork of it, on inputs that it reads from files."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import numpy as np

from ...isolation import Reporter, serve
from ..codegen.program import ENTRY


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:  # noqa: ARG001
    """Load a candidate, compare what it computes with the wanted outputs, and time it."""
    arrays, outputs = [], []
    for each in payload["tensors"]:
        if each["role"] == "input":
            arrays.append(_strided(np.load(each["file"], allow_pickle=False), each["strides"]))
        else:
            array = np.zeros(each["shape"], each["dtype"])
            if each["file"]:
                array[...] = np.load(each["file"], allow_pickle=False)
            arrays.append(array)
            if each["role"] == "output":
                outputs.append((each, array))
    library = ctypes.CDLL(payload["object"])
    function = getattr(library, ENTRY)
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_long], None
    pointers = (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))
    reporter.enter("run")
    start = time.perf_counter()
    function(pointers, payload["threads"])
    first_ms = (time.perf_counter() - start) * 1e3
    for each, array in outputs:
        wanted = np.load(each["wanted"], allow_pickle=False)
        difference = _difference(array, wanted, each["dtype"])
        if not difference <= each["tolerance"]:
            reporter.send(
                {"error": f"The output `{each['name']}` differs by {difference:.3g} of its scale."}
            )
            return
    for _ in range(3):  # threads that had to start, or a processor that others took
        if first_ms <= payload["limit_ms"]:
            break
        start = time.perf_counter()
        function(pointers, payload["threads"])
        first_ms = min(first_ms, (time.perf_counter() - start) * 1e3)
    if first_ms > payload["limit_ms"]:
        reporter.send({"error": f"The first run took {first_ms:.3g} ms, far more than the best."})
        return
    times = []
    for run in range(payload["num_warm_up"] + payload["num_runs"]):
        start = time.perf_counter()
        function(pointers, payload["threads"])
        if run >= payload["num_warm_up"]:
            times.append((time.perf_counter() - start) * 1e3)
    reporter.send({"times_ms": times})


def _strided(array: Any, strides: list[int]) -> Any:
    """Return the array laid out in memory with the given strides, in elements."""
    if array.size == 0 or list(array.strides) == [each * array.itemsize for each in strides]:
        return array
    extent = 1 + sum((size - 1) * step for size, step in zip(array.shape, strides, strict=True))
    memory = np.zeros(extent, array.dtype)
    view = np.lib.stride_tricks.as_strided(
        memory, array.shape, [each * array.itemsize for each in strides]
    )
    view[...] = array
    return view


def _difference(array: Any, wanted: Any, dtype: str) -> float:
    """Return the largest difference relative to the largest finite value that is wanted.

    Infinities and NaN have to stand where they are wanted; integers have to be equal.
    """
    if dtype == "uint16":  # bfloat16
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if array.size == 0:
        return 0.0
    if array.dtype.kind != "f":
        return 0.0 if np.array_equal(array, wanted.astype(array.dtype)) else float("inf")
    got, want = array.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(
        np.nan_to_num(got[~finite], nan=7.0), np.nan_to_num(want[~finite], nan=7.0)
    ):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(want[finite]).max()), 1e-30)
    return float(np.abs(got[finite] - want[finite]).max()) / scale


if __name__ == "__main__":
    serve(work)
