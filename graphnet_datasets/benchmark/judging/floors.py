"""The least time that the work of a sample takes, and runs that were faster than that.

Any program that computes the outputs has to write them, to read the inputs that eager reads whole,
and to do the arithmetic of the products and convolutions, at the device's peak rates at best. What
finishes in a fraction of that time has not done the work. What a run reaches of the speed of light
is `floor_ms` over the median of its latencies.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

from ...sample import Sample, Value
from ...sample.arguments import iterate_refs
from ...sample.vocabulary import ITEM_SIZE_BYTES
from .roofline import PeakRates, floor_ms

SLACK = 4.0
"""How many times faster than the floor is impossible: Winograd's F(4x4, 3x3) saves three quarters
of a convolution's multiplications, and a peak measured on a busy machine is too low."""

MIN_FLOPS = 10_000_000
MIN_BYTES = 16 * 2**20
"""Below both, the floor is microseconds on any processor, less than a call takes."""

_PARTIAL_READERS = frozenset(
    {"embedding", "embedding_bag", "gather", "getitem", "index", "index_select", "narrow", "slice",
     "select", "take", "take_along_dim", "size", "shape", "dtype", "device", "stride", "dim"}
)  # fmt: skip
"""Operators that need not read the whole of an operand."""


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
    record: dict[str, Any], row: Mapping[str, Any], num_bytes: int, peaks: PeakRates
) -> None:
    """Record the floor of a run, and warn if the candidate was impossibly fast.

    The floor of the warning is a lower one: at the fastest of the measured rates, since a candidate
    may compute in a narrower dtype, and in warm caches without the bytes that fit into them. Where
    eager itself is faster than that, the floor is wrong, for instance because outputs are views.
    """
    flops = row.get("flops")
    record["floor_ms"] = floor_ms(flops, num_bytes, str(row.get("dtype")), peaks)
    cached = peaks.cache_bytes if record["cache_mode"] == "warm" else 0
    least = floor_ms(flops, max(num_bytes - cached, 0), "", peaks)
    candidate = statistics.median(record["candidate_latency_ms"])
    baseline = statistics.median(record["baseline_latency_ms"])
    if candidate * SLACK < least <= baseline:
        record["warnings"].append(
            f"impossibly_fast: the candidate took {candidate:.3g} ms for work that takes at least "
            f"{least:.3g} ms at the peak rates of `{peaks.device}`."
        )


def _known_bytes(value: Value) -> int:
    """Return the bytes of a tensor; 0 where its sizes are symbols, which bounds nothing."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    if value.dtype is None or value.shape is None or len(sizes) < len(value.shape):
        return 0
    return ITEM_SIZE_BYTES[value.dtype] * math.prod(sizes)
