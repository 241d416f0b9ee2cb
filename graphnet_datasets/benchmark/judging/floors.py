"""The least time that the work of a sample takes, and runs that were faster than that.

Any program that computes the outputs has to write them, to read the inputs that eager reads whole,
and to do the arithmetic of the products and convolutions, at the device's peak rates at best. What
finishes in a fraction of that time has not done the work. What a run reaches of the speed of light
is `floor_ms` over the median of its latencies.
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
"""How many times faster than the floor is impossible: Winograd's F(4x4, 3x3) saves three quarters
of a convolution's multiplications."""

MIN_FLOPS = 10_000_000
MIN_BYTES = 16 * 2**20
"""Below both, the floor is microseconds on any processor, less than a call takes."""

_PARTIAL_READERS = OperatorNames("reads_some")


def least_bytes(sample: Sample, output_bytes: int) -> int:
    """Return the bytes that any program for `sample` has to read and write at least.

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
    values = [each.value for index, each in enumerate(sample.inputs) if index in read]
    return output_bytes + sum(map(_known_bytes, values))


def is_worth_a_floor(flops: int | None, num_bytes: int) -> bool:
    """Tell whether there is so much work that its floor says something."""
    return (flops or 0) >= MIN_FLOPS or num_bytes >= MIN_BYTES


def take_floor(
    record: dict[str, Any],
    row: Mapping[str, Any],
    num_bytes: int,
    peaks: PeakRates,
    measure: Callable[[], PeakRates | None],
) -> PeakRates:
    """Record the floor of a run, warn if the candidate was impossibly fast, and return the rates.

    Rates that are too low would call honest runs impossible. So eager's own rate raises them, and
    before a warning they are measured again by `measure`, which returns None where it cannot. The
    warning needs a measurement on a quiet machine; without one the run gets a warning of another
    kind and stays in the score.

    The floor of the warning is a lower one: at the fastest of the measured rates, since a candidate
    may compute in a narrower dtype, and in warm caches without the bytes that fit into them. Where
    eager itself is faster than that, the floor is wrong, for instance because outputs are views.
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
    """Return rates of which the sample's dtype is at least as fast as eager ran alone.

    Eager alone shares its process with no candidate, so no candidate can raise a peak.
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
    """Return the bytes of a tensor; 0 where its sizes are symbols, which bounds nothing."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    if value.dtype is None or value.shape is None or len(sizes) < len(value.shape):
        return 0
    return ITEM_SIZE_BYTES[value.dtype] * math.prod(sizes)
