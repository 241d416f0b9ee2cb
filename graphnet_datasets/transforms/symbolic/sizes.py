"""Sets of sizes for a graph with symbols, evenly spaced in log within a memory limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from ...errors import SampleError, SymbolError, TransformError, raises_only
from ...sample import Sample, Symbol, Value
from ...sample.symbols import evaluate
from ...sample.vocabulary import ITEM_SIZE_BYTES
from .reify import find_misfit

DEFAULT_MEMORY_BYTES = 2**30
_SMALLEST_SHARE = 8
_LARGEST_SHARE = 64
"""Sizes range from an eighth to 64 times the size of the capture, where allowed."""
_MAX_SHIFT = 4096
"""Largest change of a size made to meet the constraints."""
_BISECTIONS = 24


@raises_only(TransformError)
def spread_sizes(
    sample: Sample, count: int = 9, *, memory_limit_bytes: int = DEFAULT_MEMORY_BYTES
) -> list[dict[str, int]]:
    """Return up to `count` sets of sizes of a sample's symbols, from small to large.

    All symbols grow together by the same factor from set to set, as far as rounding and the
    constraints allow. The largest sizes are those at which inputs and live values need
    `memory_limit_bytes` (according to recorded shapes, with each view counted as separate memory),
    or the ends of the ranges. The result has fewer sets if there are not enough distinct sizes.

    Raises:
        SampleError: there are no symbols, or even the smallest sizes need more memory.

    >>> from graphnet_datasets.sample import Input
    >>> sample = Sample("example/lines", "torch", "other",
    ...     (Input("input", Value("float32", ("batch", 256))),), (), (), (Symbol("batch", 8, 1),))
    >>> [sizes["batch"] for sizes in spread_sizes(sample, 4)]
    [1, 8, 64, 512]
    >>> [sizes["batch"] for sizes in spread_sizes(sample, 4, memory_limit_bytes=2**16)]
    [1, 4, 16, 64]
    """
    if not sample.symbols:
        raise SampleError(f"`{sample.id}` has no symbols. Symbolise it first.")
    if count < 1:
        raise SampleError(f"`count` is {count}; it must be at least 1.")
    low = _sizes_at(sample, 0.0)
    if low is None or peak_bytes(sample, low) > memory_limit_bytes:
        raise SampleError(
            f"No sizes of `{sample.id}` meet its constraints within {memory_limit_bytes / 2**30:g} "
            "GiB. Allow more memory."
        )
    top = _largest_share(sample, memory_limit_bytes)
    sets: dict[tuple[int, ...], dict[str, int]] = {}
    for share in _shares(count):
        sizes = _sizes_at(sample, share * top)
        if sizes is not None and peak_bytes(sample, sizes) <= memory_limit_bytes:
            sets.setdefault(tuple(sizes.values()), sizes)
        if len(sets) == count:
            break
    return sorted(sets.values(), key=lambda sizes: math.prod(sizes.values()))


def peak_bytes(sample: Sample, sizes: Mapping[str, int]) -> int:
    """Return the peak memory of inputs and live values at given sizes, from recorded shapes.

    A value is freed after its last use; a value of unknown shape counts as zero.
    """
    alive = sum(
        _bytes(sample_input.value, sizes)
        for sample_input in sample.inputs
        if sample_input.role not in ("symbol", "scalar")
    )
    peak = alive
    num_inputs = len(sample.inputs)
    result_bytes = [sum(_bytes(value, sizes) for value in op.results or ()) for op in sample.ops]
    for size, dying in zip(result_bytes, sample.dying_values, strict=True):
        alive += size
        peak = max(peak, alive)
        alive -= sum(result_bytes[value - num_inputs] for value in dying if value >= num_inputs)
    return peak


def nearest_size(
    sample: Sample, sizes: Mapping[str, int], names: Iterable[str], wanted: int
) -> int | None:
    """Return the allowed size of several symbols that is nearest to the requested size."""
    names = tuple(names)
    for shift in range(_MAX_SHIFT):
        for size in (wanted - shift, wanted + shift):
            if size >= 1 and not find_misfit(sample, {**sizes, **dict.fromkeys(names, size)}):
                return size
    return None


def _bytes(value: Value, sizes: Mapping[str, int]) -> int:
    if value.dtype is None or value.shape is None:
        return 0
    size = ITEM_SIZE_BYTES[value.dtype]
    for dim in value.shape:
        size *= dim if isinstance(dim, int) else max(0, evaluate(dim, sizes))
    return size


def _shares(count: int) -> Iterator[float]:
    """Yield `count` shares from 0 to 1, then shares in between, in case sets coincide."""
    parts = max(1, count - 1)
    for denominator in (parts, 2 * parts, 4 * parts, 16 * parts):
        yield from (part / denominator for part in range(denominator + 1))


def _largest_share(sample: Sample, memory_limit_bytes: int) -> float:
    def fits(share: float) -> bool:
        sizes = _sizes_at(sample, share)
        try:
            return sizes is None or peak_bytes(sample, sizes) <= memory_limit_bytes
        except SymbolError:  # a size exceeds 64 bits
            return False

    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _sizes_at(sample: Sample, share: float) -> dict[str, int] | None:
    """Return sizes at a share of the way from the smallest to the largest, in log."""
    sizes = dict(sample.hints)
    for symbol in sample.symbols:
        low, high = _ends(symbol)
        wanted = round(low * (high / low) ** share)
        near = nearest_size(sample, sizes, [symbol.name], wanted)
        if near is None:
            return None
        sizes[symbol.name] = near
    return sizes


def _ends(symbol: Symbol) -> tuple[int, int]:
    low = max(1, symbol.lower or 1, -(-symbol.hint // _SMALLEST_SHARE))
    high = max(1, symbol.hint) * _LARGEST_SHARE
    return low, max(low, high if symbol.upper is None else min(high, symbol.upper))
