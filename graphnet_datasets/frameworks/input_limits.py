"""Memory required to generate the inputs of a sample, checked against limits before allocation."""

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
"""Copies of an input's elements in memory: an input is drawn and then copied into its layout. This
includes elements that a stride maps to the same address, except along expanded leading axes
(`drawn_shape`)."""


def memory_limit(memory_limit_bytes: int | None) -> int:
    """Return the given memory limit, or the memory of this machine if it is None.

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
    """Check the memory for generating the inputs of a sample against a limit, and return it in
    bytes.

    The memory is that of all inputs, plus once more the largest input for its working copy. With
    `are_laid_out`, tensors are stored with their recorded strides, otherwise contiguously. A
    `memory_limit_bytes` of None is the memory of this machine.

    Raises:
        MemoryLimitError: the memory exceeds the limit; the message names the largest input.

    >>> from graphnet_datasets.sample import Input, Value
    >>> check_inputs(Sample("example/identity", "torch", "other",
    ...     (Input("input", Value("float32", (2, 3))),), (), ()))
    48
    """
    limit = memory_limit(memory_limit_bytes)
    sizes = sample.hints if sizes is None else sizes
    total = largest = 0
    name = ""
    for position, sample_input in enumerate(sample.inputs):
        if is_weight(sample_input) and not with_weights:
            continue
        drawn, stored = _bytes_of(sample, position, sizes, are_laid_out=are_laid_out)
        total += stored
        if drawn >= largest:
            largest, name = drawn, sample.input_names[position]
    needed = total + (_WORKING_FACTOR - 1) * largest
    if needed > limit:
        raise MemoryLimitError(
            f"Generating the inputs of `{sample.id}` takes {needed / 1e9:,.3f} GB, of which "
            f"`{name}` takes {largest / 1e9:,.3f} GB while it is generated; the limit is "
            f"{limit / 1e9:,.3f} GB. Raise `memory_limit_bytes`, or skip the sample."
        )
    return needed


def input_bytes(sample: Sample, index: int) -> int:
    """Return the size in bytes of an input in its layout, or 0 if it is not a tensor.

    >>> from graphnet_datasets.sample import Input, Value
    >>> expanded = Input("input", Value("float32", (8, 3), (0, 1)))
    >>> input_bytes(Sample("example/identity", "torch", "other", (expanded,), (), ()), 0)
    12
    """
    _, stored = _bytes_of(sample, index, sample.hints, are_laid_out=True)
    return stored


def _bytes_of(
    sample: Sample, index: int, sizes: Mapping[str, int], *, are_laid_out: bool
) -> tuple[int, int]:
    """Return the bytes of an input while it is drawn, and the bytes that it occupies afterwards."""
    sample_input = sample.inputs[index]
    dtype = sample_input.value.dtype
    if dtype is None or sample_input.role in ("symbol", "scalar"):
        return 0, 0
    shape = sample.shape_of(sample_input.value, sizes) or ()
    stride = sample_input.value.stride if are_laid_out else None
    drawn_sizes = drawn_shape(sample_input, shape, sizes) if are_laid_out else shape
    drawn = stored = math.prod(drawn_sizes) * ITEM_SIZE_BYTES[dtype]
    if stride is not None:
        stored = _span(shape, [evaluate(dim, sizes) for dim in stride]) * ITEM_SIZE_BYTES[dtype]
    if any(size >= 2**62 for size in shape):
        drawn = max(drawn, 2**62)
    return drawn, stored


def _span(shape: tuple[int, ...], steps: list[int]) -> int:
    if 0 in shape or len(steps) != len(shape):
        return 0
    return 1 + sum((size - 1) * abs(step) for size, step in zip(shape, steps, strict=True))
