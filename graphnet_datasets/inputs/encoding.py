"""Number formats as bit patterns: bfloat16 and the float8 family, which NumPy lacks, and float16.

Values are rounded to nearest, ties to even, as IEEE 754 and the OCP float8 specification (OFP8
revision 1.0) have it; what lies beyond the largest finite number becomes that number.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format: its bit fields and its largest finite number."""

    mantissa_bits: int
    exponent_bias: int
    largest: float
    storage: type[np.unsignedinteger]
    has_negative_zero: bool = True

    @property
    def sign_shift(self) -> int:
        """Position of the sign bit."""
        return np.dtype(self.storage).itemsize * 8 - 1


Converter: TypeAlias = Callable[[npt.NDArray[np.float32], str, npt.NDArray], None]
"""Writes numbers as bit patterns of a dtype into an array."""

CONVERTER: Converter | None = None
"""A quicker way to the same bits, of a framework that is there: see `convert_with`."""
MIN_CONVERTED = 4096
"""Elements from which on it is worth its call."""


def convert_with(converter: Converter) -> None:
    """Have float16 and bfloat16 converted by a framework, which rounds to the very same bits."""
    global CONVERTER
    CONVERTER = converter


def narrow(values: npt.NDArray[np.float32], dtype: str, out: npt.NDArray) -> None:
    """Write finite `values` within the range of `dtype` into `out`, as its bit patterns.

    >>> out = np.empty(2, np.float16)
    >>> narrow(np.array([1 / 3, 6e-8], np.float32), "float16", out)
    >>> bool((out == np.array([1 / 3, 6e-8], np.float16)).all())
    True
    """
    is_half = dtype == "float16"
    if CONVERTER is not None and out.size >= MIN_CONVERTED and (is_half or dtype == "bfloat16"):
        CONVERTER(values, dtype, out)
    elif is_half:
        _narrow_to_half(values, out.view(np.uint16))
    elif dtype == "bfloat16":
        out[:] = _round_bits(values.view(np.uint32), 16)
    else:
        out[:] = encode(values, dtype)


def from_bfloat16(codes: npt.NDArray) -> npt.NDArray[np.float32]:
    """Return the numbers of patterns of bfloat16, exactly.

    >>> from_bfloat16(np.array([0x3F80, 0xC000], np.uint16)).tolist()
    [1.0, -2.0]
    """
    return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)


def decode(codes: npt.NDArray, dtype: str) -> npt.NDArray:
    """Return numbers of float32, float64, float16 or bfloat16; the wider two as they are.

    >>> decode(np.array([0x3F80, 0xC000], np.uint16), "bfloat16").tolist()
    [1.0, -2.0]
    """
    if dtype == "bfloat16":
        return from_bfloat16(codes)
    return codes.astype(np.float32) if dtype == "float16" else codes


def cut_codes(codes: npt.NDArray, lowest: int, highest: int) -> None:
    """Set what is beyond the bounds to the bounds, in patterns of 16 bits, in place.

    `lowest` is the pattern of a number below zero, `highest` that of one above. As signed integers
    patterns above zero have the order of their numbers and those below are less; as unsigned ones
    patterns below zero have the opposite order and those above are less. Where bounds are seldom
    passed, a maximum tells of most arrays that none is, and the few elements are found one by one:
    NumPy's cut of integers takes eight times as long as a maximum.

    >>> numbers = np.array([-3, -1, 0, 1, 3], np.float16)
    >>> cut_codes(numbers, *np.array([-2, 2], np.float16).view(np.uint16).tolist())
    >>> numbers.tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    signed, unsigned = codes.view(np.int16), codes.view(np.uint16)
    for patterns, limit in ((signed, highest), (unsigned, lowest)):
        if np.maximum.reduce(patterns) > limit:
            patterns[np.flatnonzero(patterns > limit)] = limit


def _narrow_to_half(values: npt.NDArray[np.float32], out: npt.NDArray[np.uint16]) -> None:
    """Write float16 patterns; NumPy's own conversion takes several times as long."""
    bits = values.view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    codes = _round_bits(magnitude, 13)
    codes -= np.uint32(112 << 10)
    sign = bits >> np.uint32(16)
    sign &= np.uint32(0x8000)
    codes |= sign
    out[:] = codes
    # Numbers below the smallest normal one are few.
    small = np.flatnonzero(magnitude < np.uint32(113 << 23))
    out[small] = values[small].astype(np.float16).view(np.uint16)


FORMATS = {
    "bfloat16": FloatFormat(7, 127, (2 - 2**-7) * 2.0**127, np.uint16),
    "float8_e4m3fn": FloatFormat(3, 7, 448.0, np.uint8),
    "float8_e5m2": FloatFormat(2, 15, 57344.0, np.uint8),
    "float8_e4m3fnuz": FloatFormat(3, 8, 240.0, np.uint8, has_negative_zero=False),
    "float8_e5m2fnuz": FloatFormat(2, 16, 57344.0, np.uint8, has_negative_zero=False),
}


@functools.cache
def finite_range(dtype: str) -> tuple[float, float]:
    """Return the smallest normal and the largest finite number of a floating-point format.

    >>> finite_range("float16"), finite_range("float8_e5m2")
    ((6.103515625e-05, 65504.0), (6.103515625e-05, 57344.0))
    """
    if dtype in FORMATS:
        return 2.0 ** (1 - FORMATS[dtype].exponent_bias), FORMATS[dtype].largest
    if dtype == "float8_e8m0fnu":
        return 2.0**-127, 2.0**127
    limits = np.finfo(dtype)
    return float(limits.smallest_normal), float(limits.max)


def encode(values: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[np.unsignedinteger]:
    """Return the bit patterns of finite `values` in the format `dtype`.

    `dtype` is a key of `FORMATS` or `float8_e8m0fnu`, which has powers of two only, without sign:
    there the magnitude counts, and zero becomes the smallest power.

    >>> encode(np.array([1.0, -2.0], np.float32), "bfloat16").tolist() == [0x3F80, 0xC000]
    True
    """
    if dtype == "float8_e8m0fnu":
        return _encode_exponent(values)
    fmt = FORMATS[dtype]
    clipped = np.clip(values, np.float32(-fmt.largest), np.float32(fmt.largest))
    bits = clipped.view(np.uint32)
    if dtype == "bfloat16":
        # The upper half of a float32: the sign stays where it is.
        return _round_bits(bits, 16).astype(np.uint16)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    sign = (bits >> np.uint32(31)) << np.uint32(fmt.sign_shift)
    codes = _round_bits(magnitude, 23 - fmt.mantissa_bits)
    codes -= np.uint32((127 - fmt.exponent_bias) << fmt.mantissa_bits)
    # Below the smallest normal number codes count multiples of the smallest subnormal one.
    is_subnormal = magnitude < np.uint32((128 - fmt.exponent_bias) << 23)
    units = np.float32(2.0 ** (fmt.exponent_bias - 1 + fmt.mantissa_bits))
    small = np.rint(np.minimum(np.abs(clipped) * units, np.float32(1 << fmt.mantissa_bits)))
    np.copyto(codes, small, where=is_subnormal, casting="unsafe")
    if not fmt.has_negative_zero:
        sign[codes == 0] = 0
    codes |= sign
    return codes.astype(fmt.storage)


def _round_bits(magnitude: npt.NDArray[np.uint32], dropped: int) -> npt.NDArray[np.uint32]:
    """Drop the lowest bits of each pattern, rounding to nearest, ties to even."""
    rounded = magnitude >> np.uint32(dropped)
    rounded &= np.uint32(1)
    rounded += magnitude
    rounded += np.uint32((1 << (dropped - 1)) - 1)
    rounded >>= np.uint32(dropped)
    return rounded


def _encode_exponent(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    magnitude = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
    # A tie, 1.5 times a power of two, goes up: there is no mantissa whose last bit could decide.
    codes = (magnitude + np.uint32(1 << 22)) >> np.uint32(23)
    return np.minimum(codes, np.uint32(254)).astype(np.uint8)
