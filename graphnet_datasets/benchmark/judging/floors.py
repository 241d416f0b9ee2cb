"""Lower bounds for the time that a sample takes, and detection of runs that are faster.

Any program that computes the outputs must write them, read the inputs that eager reads entirely,
and do the arithmetic of products and convolutions, at most at the device's peak rates. A run that
takes a small fraction of this time did not do the work. The share of the speed of light that a run
reaches is `floor_ms` divided by its median latency.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from ...operators import OperatorNames
from ...sample import Sample, Value
from ...sample.arguments import iterate_refs
from ...sample.vocabulary import ITEM_SIZE_BYTES
from .roofline import PeakRates, floor_ms

SLACK = 4.0
"""How many times faster than the floor counts as impossible: Winograd's F(4x4, 3x3) saves three
quarters of a convolution's multiplications."""

MIN_FLOPS = 10_000_000
MIN_BYTES = 16 * 2**20
"""Work below both limits has a floor of microseconds on any processor, which is less than the
overhead of a call."""

_PARTIAL_READERS = OperatorNames("reads_some")


def least_bytes(sample: Sample, output_bytes: int) -> int:
    """Return the number of bytes that any program for `sample` must read and write.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op
    >>> table, index = Value("float32", (1000, 8)), Value("int64", (4,))
    >>> sample = Sample("example/lookup", "torch", "other",
    ...     (Input("input", index), Input("parameter", table)),
    ...     (Op("torch.nn.functional.embedding", (Ref(0), Ref(1))),), Ref(2))
    >>> least_bytes(sample, 4 * 8 * 4)
    128
    """
    read: set[int] = set()
    for op in sample.ops:
        if op.target.rpartition(".")[2] not in _PARTIAL_READERS:
            for arg in (*op.args, *(value for _, value in op.kwargs)):
                read.update(iterate_refs(arg))
    values = [value.value for index, value in enumerate(sample.inputs) if index in read]
    return output_bytes + sum(map(_known_bytes, values))


def is_worth_a_floor(flops: int | None, num_bytes: int) -> bool:
    """Return whether there is enough work for a meaningful floor."""
    return (flops or 0) >= MIN_FLOPS or num_bytes >= MIN_BYTES


def take_floor(
    record: dict[str, Any],
    row: Mapping[str, Any],
    num_bytes: int,
    peaks: PeakRates,
    measure: Callable[[], PeakRates | None],
) -> PeakRates:
    """Record the floor of a run, warn if the candidate was impossibly fast, and return the rates.

    Rates that are too low would flag correct runs. Eager's own rate therefore raises them, and
    before a warning `measure` measures them again (None if it cannot). The warning requires a
    measurement on a quiet machine; without one the run gets a different warning and stays in the
    score.

    The warning uses a lower floor: the fastest of the measured rates, because a candidate may
    compute in a narrower dtype, and without the bytes that fit into warm caches. If eager itself is
    faster than this floor, the floor is wrong, for instance because outputs are views.
    """
    peaks = raised_by_eager(peaks, record, row)
    confirmed = None
    if _is_impossible(record, row, num_bytes, peaks):
        confirmed = measure()
        peaks = peaks if confirmed is None else peaks.raised(confirmed)
    flops = row.get("flops")
    record["floor_ms"] = floor_ms(flops, num_bytes, str(row.get("dtype")), peaks)
    if _is_impossible(record, row, num_bytes, peaks):
        is_sure = confirmed is not None and confirmed.is_quiet
        candidate = statistics.median(record["candidate_latency_ms"])
        least = _least_ms(record, row, num_bytes, peaks)
        message = (
            f"the candidate took {candidate:.3g} ms for work that takes at least {least:.3g} ms at "
            f"the peak rates of `{peaks.device}`"
        )
        record["warnings"].append(
            f"impossibly_fast: {message}."
            if is_sure
            else f"faster_than_peak: {message}, which could not be measured on a quiet machine."
        )
    return peaks


def raised_by_eager(
    peaks: PeakRates, record: Mapping[str, Any], row: Mapping[str, Any]
) -> PeakRates:
    """Return rates that are at least as high as eager's own rate for the sample's dtype.

    Eager alone shares its process with no candidate, so a candidate cannot raise the peak.
    """
    dtype, flops, times_ms = str(row.get("dtype")), row.get("flops"), record["baseline_alone_ms"]
    if not flops or not times_ms or dtype not in peaks.flops_per_s:
        return peaks
    rate = flops / statistics.median(times_ms) * 1000
    if rate <= peaks.flops_per_s[dtype]:
        return peaks
    return dataclasses.replace(peaks, flops_per_s={**peaks.flops_per_s, dtype: rate})


def _is_impossible(
    record: Mapping[str, Any], row: Mapping[str, Any], num_bytes: int, peaks: PeakRates
) -> bool:
    least = _least_ms(record, row, num_bytes, peaks)
    candidate = statistics.median(record["candidate_latency_ms"])
    return candidate * SLACK < least <= statistics.median(record["baseline_latency_ms"])


def _least_ms(
    record: Mapping[str, Any], row: Mapping[str, Any], num_bytes: int, peaks: PeakRates
) -> float:
    """Return the floor at the fastest rate, without the bytes that a warm cache may hold."""
    cached = peaks.cache_bytes if record["cache_mode"] == "warm" else 0
    return floor_ms(row.get("flops"), max(num_bytes - cached, 0), "", peaks)


def _known_bytes(value: Value) -> int:
    """Return the bytes of a tensor, or 0 if its sizes are symbolic."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    if value.dtype is None or value.shape is None or len(sizes) < len(value.shape):
        return 0
    return ITEM_SIZE_BYTES[value.dtype] * math.prod(sizes)
