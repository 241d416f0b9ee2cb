"""Bit patterns of number formats: float16, and bfloat16 and float8, which NumPy lacks.

Values are rounded to nearest, ties to even, as in IEEE 754 and the OCP float8 specification (OFP8
revision 1.0). Values beyond the largest finite number saturate.
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
        """The position of the sign bit."""
        return np.dtype(self.storage).itemsize * 8 - 1


Converter: TypeAlias = Callable[[npt.NDArray[np.float32], str, npt.NDArray], None]
"""Writes numbers to an array as bit patterns of a dtype."""

CONVERTER: Converter | None = None
"""A faster conversion with identical results, from a framework; see `convert_with`."""
MIN_CONVERTED = 4096
"""Minimum number of elements for which the converter is faster."""


def convert_with(converter: Converter) -> None:
    """Set a framework's converter for float16 and bfloat16, which must round to identical bits."""
    global CONVERTER
    CONVERTER = converter


def narrow(values: npt.NDArray[np.float32], dtype: str, out: npt.NDArray) -> None:
    """Write finite `values` within the range of `dtype` to `out`, as bit patterns of `dtype`.

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
    """Return the exact float32 values of bfloat16 bit patterns.

    >>> from_bfloat16(np.array([0x3F80, 0xC000], np.uint16)).tolist()
    [1.0, -2.0]
    """
    return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)


def decode(codes: npt.NDArray, dtype: str) -> npt.NDArray:
    """Return float16 or bfloat16 elements as float32, and float32 or float64 elements unchanged.

    >>> decode(np.array([0x3F80, 0xC000], np.uint16), "bfloat16").tolist()
    [1.0, -2.0]
    """
    if dtype == "bfloat16":
        return from_bfloat16(codes)
    return codes.astype(np.float32) if dtype == "float16" else codes


def cut_codes(codes: npt.NDArray, lowest: int, highest: int) -> None:
    """Clip numbers to the bounds in place, as 16-bit patterns.

    `lowest` is the pattern of a negative number, `highest` that of a positive number. As signed
    integers, patterns of positive numbers have the order of their numbers, and those of negative
    numbers are smaller. As unsigned integers, patterns of negative numbers have the opposite order,
    and those of positive numbers are smaller. If numbers rarely exceed the bounds, a maximum shows
    for most arrays that nothing needs to be clipped. NumPy's integer clip takes eight times as long
    as a maximum.

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
    """Write float16 patterns; several times faster than NumPy's conversion."""
    bits = values.view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    codes = _round_bits(magnitude, 13)
    codes -= np.uint32(112 << 10)
    sign = bits >> np.uint32(16)
    sign &= np.uint32(0x8000)
    codes |= sign
    out[:] = codes
    # Subnormal numbers are rare.
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

    `dtype` is a key of `FORMATS` or `float8_e8m0fnu`, which represents only powers of two without a
    sign. For the latter, magnitudes are encoded, and zero becomes the smallest power.

    >>> encode(np.array([1.0, -2.0], np.float32), "bfloat16").tolist() == [0x3F80, 0xC000]
    True
    """
    if dtype == "float8_e8m0fnu":
        return _encode_exponent(values)
    fmt = FORMATS[dtype]
    clipped = np.clip(values, np.float32(-fmt.largest), np.float32(fmt.largest))
    bits = clipped.view(np.uint32)
    if dtype == "bfloat16":
        # bfloat16 is the upper half of a float32, including the sign.
        return _round_bits(bits, 16).astype(np.uint16)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    sign = (bits >> np.uint32(31)) << np.uint32(fmt.sign_shift)
    codes = _round_bits(magnitude, 23 - fmt.mantissa_bits)
    codes -= np.uint32((127 - fmt.exponent_bias) << fmt.mantissa_bits)
    # Subnormal codes count multiples of the smallest subnormal number.
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
    # A tie (1.5 times a power of two) is rounded up: there is no mantissa bit to break it.
    codes = (magnitude + np.uint32(1 << 22)) >> np.uint32(23)
    return np.minimum(codes, np.uint32(254)).astype(np.uint8)
