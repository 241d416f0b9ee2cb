"""What making the inputs of a sample takes, compared with limits before any of it is taken."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from ..errors import MemoryLimitError
from ..inputs import drawn_shape
from ..sample import Sample
from ..sample.symbols import evaluate
from ..sample.vocabulary import ITEM_SIZE_BYTES
from .choices import is_weight

_WORKING_FACTOR = 2
"""An input is drawn, then laid out: its elements are there twice, even those that a stride leaves
in one place, but for the leading axes along which it is expanded (`drawn_shape`)."""


def memory_limit(memory_limit_bytes: int | None) -> int:
    """Return the bytes that a sample may take: those given, or the memory of this machine.

    >>> memory_limit(10**9)
    1000000000
    """
    if memory_limit_bytes is not None:
        return memory_limit_bytes
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_inputs(
    sample: Sample,
    sizes: Mapping[str, int] | None = None,
    memory_limit_bytes: int | None = None,
    *,
    with_weights: bool = True,
    are_laid_out: bool = True,
) -> int:
    """Return the bytes that making the inputs of a sample takes at most, after a comparison.

    `are_laid_out`: a tensor is as the recorded stride has it, otherwise its elements are all there.
    All of them together, and once more the largest while it is made. `memory_limit_bytes` of None
    is the memory of this machine.

    Raises:
        MemoryLimitError: it is more than the limit; the message names the largest input.

    >>> from graphnet_datasets.sample import Input, Value
    >>> check_inputs(Sample("example/identity", "torch", "other",
    ...     (Input("input", Value("float32", (2, 3))),), (), ()))
    48
    """
    limit = memory_limit(memory_limit_bytes)
    sizes = sample.hints if sizes is None else sizes
    total = largest = 0
    name = ""
    for position, each in enumerate(sample.inputs):
        if is_weight(each) and not with_weights:
            continue
        drawn, held = _bytes_of(sample, position, sizes, are_laid_out=are_laid_out)
        total += held
        if drawn >= largest:
            largest, name = drawn, sample.input_names[position]
    needed = total + (_WORKING_FACTOR - 1) * largest
    if needed > limit:
        raise MemoryLimitError(
            f"Making the inputs of `{sample.id}` takes {needed / 1e9:,.3f} GB, of which `{name}` "
            f"takes {largest / 1e9:,.3f} GB while it is made; the limit is {limit / 1e9:,.3f} GB. "
            "Raise `memory_limit_bytes`, or skip the sample."
        )
    return needed


def input_bytes(sample: Sample, index: int) -> int:
    """Return the bytes that an input takes once it is laid out; 0 for what is no tensor.

    >>> from graphnet_datasets.sample import Input, Value
    >>> expanded = Input("input", Value("float32", (8, 3), (0, 1)))
    >>> input_bytes(Sample("example/identity", "torch", "other", (expanded,), (), ()), 0)
    12
    """
    _, held = _bytes_of(sample, index, sample.hints, are_laid_out=True)
    return held


def _bytes_of(
    sample: Sample, index: int, sizes: Mapping[str, int], *, are_laid_out: bool
) -> tuple[int, int]:
    """Return the bytes that are drawn of an input, and those that it takes then."""
    each = sample.inputs[index]
    dtype = each.value.dtype
    if dtype is None or each.role in ("symbol", "scalar"):
        return 0, 0
    shape = sample.shape_of(each.value, sizes) or ()
    stride = each.value.stride if are_laid_out else None
    made = drawn_shape(each, shape, sizes) if are_laid_out else shape
    drawn = held = math.prod(made) * ITEM_SIZE_BYTES[dtype]
    if stride is not None:
        held = _span(shape, [evaluate(dim, sizes) for dim in stride]) * ITEM_SIZE_BYTES[dtype]
    if any(size >= 2**62 for size in shape):
        drawn = max(drawn, 2**62)
    return drawn, held


def _span(shape: tuple[int, ...], steps: list[int]) -> int:
    if 0 in shape or len(steps) != len(shape):
        return 0
    return 1 + sum((size - 1) * abs(step) for size, step in zip(shape, steps, strict=True))
