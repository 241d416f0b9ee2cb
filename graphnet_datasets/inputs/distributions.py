"""Random floats, complex numbers, integers and booleans with given statistics."""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..errors import SampleError
from ..sample import Statistics
from .draws import (
    BLOCK_SIZE,
    SEGMENT_SIZE,
    Float32,
    all_addresses,
    fill_bits,
    fill_normals,
    scaled_block,
)
from .elementary import exp, log
from .encoding import FORMATS, cut_codes, finite_range, narrow
from .integers import fill_uniform, key_of_part
from .memory import empty
from .storage import STORAGE

_CHUNK = 4 * SEGMENT_SIZE
"""Number of elements generated at a time: 256 KiB of float32, so that each pass hits the cache."""
_NARROW_CHUNK = 16 * SEGMENT_SIZE
"""The same for dtypes that need rounding: call overhead of the additional passes outweighs cache
misses."""

_SKEW_LIMIT = 2.0
"""In standard deviations. If one bound is closer to the mean and the other is much farther, the
distribution is treated as skewed, starting at the closer bound."""

_SELDOM = 2.5
"""In standard deviations; about one element in a hundred is beyond such bounds."""

_FURTHEST = 7.0
"""In standard deviations; an upper bound for the elements of the blocks."""

_WORK: dict[str, type[np.floating]] = {"float64": np.float64}
"""The dtype in which elements are computed, if not float32."""


@dataclasses.dataclass(frozen=True, slots=True)
class Distribution:
    """Statistics without missing values; the bounds may be infinite."""

    mean: float
    std: float
    minimum: float
    maximum: float


def complete(statistics: Statistics, where: str) -> Distribution:
    """Fill in statistics that are missing, infinite or NaN from the others."""
    minimum = _finite(statistics.min, -math.inf)
    maximum = _finite(statistics.max, math.inf)
    if minimum > maximum:
        raise SampleError(f"{where} has a minimum of {minimum} above its maximum of {maximum}.")
    has_range = minimum > -math.inf and maximum < math.inf
    mean = _finite(statistics.mean, math.nan)
    std = _finite(statistics.std, math.nan)
    if std < 0:
        raise SampleError(f"{where} has a negative standard deviation of {std}.")
    if math.isnan(mean):
        mean = minimum / 2 + maximum / 2 if has_range else min(max(0.0, minimum), maximum)
        std = 0.0 if math.isnan(std) and not has_range else std
    if math.isnan(std):
        # Standard deviation of a uniform distribution over the range.
        std = (maximum / 2 - minimum / 2) / math.sqrt(3) if has_range else 0.0
    return Distribution(mean, std, minimum, maximum)


def _finite(number: float | None, otherwise: float) -> float:
    return number if number is not None and math.isfinite(number) else otherwise


def spread_constants(wanted: Distribution, dtype: str) -> Distribution:
    """Return `wanted` with a nonzero spread if it was constant and the dtype allows a spread."""
    if wanted.std > 0 and wanted.minimum < wanted.maximum:
        return wanted
    constant = min(max(wanted.mean, wanted.minimum), wanted.maximum)
    if dtype == "bool":
        return Distribution(0.875 if constant >= 0.5 else 0.125, 0.33, 0.0, 1.0)
    if "float" not in dtype and "complex" not in dtype:
        return wanted
    spread = 0.1 * abs(constant) or 0.1
    return Distribution(constant, spread, constant - 5 * spread, constant + 5 * spread)


def draw(
    key: int, size: int, dtype: str, wanted: Distribution, *, is_positive: bool = False
) -> npt.NDArray:
    """Return `size` random elements of `dtype`, in the dtype of `STORAGE`.

    `is_positive` is for floats used as divisors or under square roots.
    """
    if dtype.startswith("complex"):
        return _draw_complex(key, size, dtype, wanted)
    out = empty(size, STORAGE[dtype])
    if dtype == "bool":
        _fill_bools(key, out, wanted)
    elif "float" not in dtype:
        _fill_integers(key, out, wanted)
    else:
        _fill_floats(key, out, dtype, wanted, is_positive=is_positive)
    return out


def _draw_complex(key: int, size: int, dtype: str, wanted: Distribution) -> npt.NDArray:
    """Draw both parts with half of the variance each; the bounds apply to each part."""
    part = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}[dtype]
    share = wanted.std / math.sqrt(2)
    parts = np.empty((size, 2), STORAGE[part])
    real = dataclasses.replace(wanted, std=share)
    imaginary = dataclasses.replace(real, mean=0.0)
    for column, distribution in enumerate((real, imaginary)):
        drawn = np.empty(size, STORAGE[part])
        _fill_floats(key_of_part(key, column), drawn, part, distribution)
        parts[:, column] = drawn
    if dtype == "complex32" and sys.byteorder == "big":
        parts = np.ascontiguousarray(parts[:, ::-1])
    return parts.view(STORAGE[dtype]).reshape(size)


class _Scratch(threading.local):
    """Reusable buffers for normals, since the kernel would zero new memory for every tensor."""

    def __init__(self) -> None:
        self.normals = np.empty(_NARROW_CHUNK, np.float32)


_scratch = _Scratch()


def _fill_floats(
    key: int, out: npt.NDArray, dtype: str, wanted: Distribution, *, is_positive: bool = False
) -> None:
    work = _WORK.get(dtype, np.float32)
    shaping = _floats_shaper(dtype, out.size, wanted, is_positive=is_positive)
    is_narrow = dtype in FORMATS or dtype in ("float16", "float8_e8m0fnu")
    limits = shaping.limits_as_codes(dtype)
    chunk = _NARROW_CHUNK if is_narrow else _CHUNK
    normals = out if out.dtype == np.float32 else _scratch.normals
    with np.errstate(over="ignore"):
        for start in range(0, out.size, chunk):
            piece = out[start : start + chunk]
            values = piece if piece.dtype == np.float32 else normals[: piece.size]
            fill_normals(key, start, values, shaping.block)
            if work is np.float64:
                values = values.astype(work)
            if shaping.block is None:
                shaping.shape(values)
            if limits is None:
                shaping.cut(values)
            if is_narrow:
                narrow(values.astype(np.float32, copy=False), dtype, piece)
            elif values is not piece:
                piece[:] = values
            if limits is not None:
                cut_codes(piece, *limits)


def _floats_shaper(dtype: str, size: int, wanted: Distribution, *, is_positive: bool) -> _Shaping:
    return _shaper(
        _within(wanted, dtype),
        _WORK.get(dtype, np.float32),
        is_positive=is_positive,
        is_recorded_positive=wanted.minimum >= 0,  # not because the dtype has no sign
        is_large=size >= BLOCK_SIZE,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Normals:
    """A large normal tensor in a form that a device can generate without host memory.

    Element i of segment s is block[addresses[0, s] + i] + block[addresses[1, s] + i] in float32,
    clipped to `bounds` (None if no element exceeds them) and then rounded.
    """

    size: int
    block: Float32
    addresses: npt.NDArray[np.int64]
    bounds: tuple[float, float] | None = None


def as_normals(
    key: int, size: int, dtype: str, wanted: Distribution, *, is_positive: bool = False
) -> Normals | None:
    """Return the result of `draw` as `Normals`, or None if it is not generated from a block."""
    if dtype not in ("float32", "float16", "bfloat16"):
        return None
    shaping = _floats_shaper(dtype, size, wanted, is_positive=is_positive)
    if shaping.block is None:
        return None
    addresses = all_addresses(key, -(-size // SEGMENT_SIZE))
    if shaping.bounds is None:
        return Normals(size, shaping.block, addresses)
    lowest, highest = shaping.bounds
    return Normals(size, shaping.block, addresses, (float(lowest), float(highest)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Shaping:
    """Transforms standard normals in place to a distribution; `cut` clips to the bounds.

    `bounds` is None if the result of `shape` is always within bounds. `is_seldom_cut` means that
    few elements exceed them. `furthest` is the largest magnitude before clipping. Values drawn from
    `block`, if set, already have the distribution.
    """

    shape: Callable[[npt.NDArray], None]
    bounds: tuple[np.floating, np.floating] | None = None
    is_seldom_cut: bool = False
    furthest: float = math.inf
    block: Float32 | None = None

    def cut(self, values: npt.NDArray) -> None:
        """Clip the values to the bounds in place."""
        if self.bounds is not None:
            values.clip(*self.bounds, out=values)

    def limits_as_codes(self, dtype: str) -> tuple[int, int] | None:
        """Return the bounds as 16-bit patterns if elements are to be clipped after rounding.

        Rounding preserves order, so clipping afterwards is equivalent and touches half as many
        bytes. Returns None for other dtypes, if there are no bounds or frequently exceeded ones, if
        all elements have the same sign, or if some elements may exceed the range of the dtype.
        """
        if self.bounds is None or not self.is_seldom_cut or dtype not in ("float16", "bfloat16"):
            return None
        lowest, highest = self.bounds
        if not lowest < 0 < highest or self.furthest > finite_range(dtype)[1]:
            return None
        limits, codes = np.array([lowest, highest], np.float32), np.empty(2, STORAGE[dtype])
        if dtype == "float16":
            codes[:] = limits  # faster than `narrow` for two numbers
        else:
            narrow(limits, dtype, codes)
        lowest_code, highest_code = codes.view(np.uint16).tolist()
        return lowest_code, highest_code


def _within(wanted: Distribution, dtype: str) -> Distribution:
    """Return `wanted` with its bounds limited to the range of the dtype."""
    smallest, largest = finite_range(dtype)
    lowest = -largest if dtype != "float8_e8m0fnu" else smallest
    limit = [min(max(bound, lowest), largest) for bound in (wanted.minimum, wanted.maximum)]
    return Distribution(min(max(wanted.mean, lowest), largest), min(wanted.std, largest), *limit)


def _shaper(
    wanted: Distribution,
    work: type[np.floating],
    *,
    is_positive: bool = False,
    is_recorded_positive: bool = False,
    is_large: bool = False,
) -> _Shaping:
    """Return the transformation from standard normals to the wanted distribution.

    By default the distribution is a normal, clipped at the bounds. Tensors larger than a block are
    read from a scaled block. Values that must be positive (variances), and nonnegative values with
    a mean near zero, are log-normal with the same mean and standard deviation: its lower tail is
    light, so that no channel is divided by almost zero.

    Otherwise, if the closer bound is within `_SKEW_LIMIT` standard deviations of the mean and the
    other bound is more than twice as far, clipping would accumulate elements at the closer bound.
    The distribution is then bound ± (a + b z)^2, a noncentral chi-square with the same mean, a^2 +
    b^2, and the same variance, 4 a^2 b^2 + 2 b^4, as far as possible (it is at most twice the
    squared distance of the mean from the bound).
    """
    minimum, maximum = work(wanted.minimum), work(wanted.maximum)
    below, above = wanted.mean - wanted.minimum, wanted.maximum - wanted.mean
    nearer = min(below, above)
    is_skewed = 0 < nearer < _SKEW_LIMIT * wanted.std and max(below, above) > 2 * nearer
    is_lognormal = is_positive or (is_skewed and is_recorded_positive and below <= above)
    if is_lognormal and wanted.mean > 0 and wanted.std > 0:
        return _Shaping(_lognormal_shaper(wanted))
    if is_skewed:
        bound, sign = (minimum, 1) if below <= above else (maximum, -1)
        ratio = min(wanted.std / nearer, math.sqrt(2))
        squared_slope = 1 - math.sqrt(max(0.0, 1 - ratio * ratio / 2))
        root = math.sqrt(nearer)
        slope = work(root * math.sqrt(squared_slope))
        offset = work(root * math.sqrt(1 - squared_slope))

        def shape_skewed(values: npt.NDArray) -> None:
            np.multiply(values, slope, out=values)
            np.add(values, offset, out=values)
            np.multiply(values, values, out=values)
            (np.add if sign > 0 else np.subtract)(bound, values, out=values)

        return _Shaping(shape_skewed, (minimum, maximum))

    mean, std = np.array(wanted.mean, work), np.array(wanted.std, work)
    if std == 0:
        constant = min(max(mean, minimum), maximum)
        return _Shaping(lambda values: values.fill(constant))
    is_scaled, is_moved = bool(std != 1), bool(mean != 0)

    def shape_normal(values: npt.NDArray) -> None:
        # Array scalars and a positional `out` save a fraction of a microsecond each.
        if is_scaled:
            np.multiply(values, std, values)
        if is_moved:
            np.add(values, mean, values)

    is_cut = nearer < _FURTHEST * wanted.std
    is_from_block = is_large and work is np.float32
    with np.errstate(over="ignore"):
        block = scaled_block(wanted.mean, wanted.std) if is_from_block else None
    return _Shaping(
        shape_normal,
        (minimum, maximum) if is_cut else None,
        is_seldom_cut=nearer >= _SELDOM * wanted.std,
        furthest=abs(wanted.mean) + _FURTHEST * wanted.std,
        block=block,
    )


def _lognormal_shaper(wanted: Distribution) -> Callable[[npt.NDArray], None]:
    """Return the transformation from standard normals to a log-normal with the wanted moments."""
    ratio = wanted.std / wanted.mean
    variance, centre = log(np.array([1 + ratio * ratio, wanted.mean])).tolist()
    centre -= variance / 2
    spread = math.sqrt(variance)

    def shape_lognormal(values: npt.NDArray) -> None:
        drawn = exp(values.astype(np.float64) * spread + centre)
        np.clip(drawn, wanted.minimum, wanted.maximum, out=drawn)
        values[:] = drawn

    return shape_lognormal


def _fill_bools(key: int, out: npt.NDArray, wanted: Distribution) -> None:
    mean = min(max(wanted.mean, wanted.minimum, 0.0), wanted.maximum, 1.0)
    threshold = round(mean * 2**32)
    bits = np.empty(min(_CHUNK, out.size), np.uint32)
    for start in range(0, out.size, _CHUNK):
        piece = out[start : start + _CHUNK]
        fill_bits(key, start, bits[: piece.size])
        np.less(bits[: piece.size].astype(np.uint64), np.uint64(threshold), out=piece)


def _fill_integers(key: int, out: npt.NDArray, wanted: Distribution) -> None:
    """Draw uniform integers within the bounds, or around the mean if there are no bounds.

    Without bounds, the range is that of the uniform distribution with the recorded mean and
    standard deviation, limited to nonnegative numbers if the mean is nonnegative.
    """
    limits = np.iinfo(out.dtype)
    half_width = math.sqrt(3) * wanted.std
    low, high = wanted.mean - half_width, wanted.mean + half_width
    if wanted.mean >= 0:
        low = max(low, 0.0)
    low = wanted.minimum if wanted.minimum > -math.inf else low
    high = wanted.maximum if wanted.maximum < math.inf else high
    first = min(max(math.ceil(low), limits.min), limits.max)
    last = max(first, min(max(math.floor(high), limits.min), limits.max))
    fill_uniform(key, out, first, last)
