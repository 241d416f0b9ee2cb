"""Conversion of output elements to numbers, including dtypes that NumPy lacks."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

_FLOAT8: dict[str, tuple[int, int]] = {
    "float8_e4m3fn": (3, 7),
    "float8_e5m2": (2, 15),
    "float8_e4m3fnuz": (3, 8),
    "float8_e5m2fnuz": (2, 16),
}
"""Mantissa bits and exponent bias."""


def decode(elements: npt.NDArray, dtype: str) -> npt.NDArray:
    """Convert elements to numbers that NumPy supports.

    bfloat16, float8 and complex32 arrive as unsigned integers with their bit patterns (complex32
    with the real part in the low half). Other dtypes are returned unchanged.

    >>> decode(np.array([0x3F80], np.uint16), "bfloat16")
    array([1.], dtype=float32)
    """
    if dtype == "bfloat16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in _FLOAT8:
        return _float8_numbers(dtype)[elements]
    if dtype == "float8_e8m0fnu":
        return _exponent_numbers()[elements]
    if dtype == "complex32":
        bits = np.ascontiguousarray(elements, "<u4")
        parts = bits.view("<f2").reshape(*bits.shape, 2).astype(np.float32)
        return parts.view(np.complex64).reshape(bits.shape)
    return elements


def decode_wide(elements: npt.NDArray, dtype: str) -> npt.NDArray:
    """Convert elements to float64, or to complex128 if they are complex.

    Uninitialised memory may contain signalling NaNs, whose conversion is an invalid operation. They
    count as ordinary NaNs here, without a warning.

    >>> decode_wide(np.array([0x7FA00000], np.uint32).view(np.float32), "float32")
    array([nan])
    """
    with np.errstate(invalid="ignore"):
        numbers = decode(elements, dtype)
        return numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)


@functools.cache
def _float8_numbers(dtype: str) -> npt.NDArray[np.float32]:
    """Return the numbers of all 256 bit patterns (OCP OFP8 revision 1.0; fnuz has one zero)."""
    mantissa_bits, bias = _FLOAT8[dtype]
    code = np.arange(256)
    sign = np.where(code >= 128, -1.0, 1.0)
    exponent = (code & 127) >> mantissa_bits
    mantissa = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    is_normal = exponent > 0
    scale = np.exp2(np.where(is_normal, exponent, 1) - bias)
    numbers = sign * scale * (is_normal + mantissa)
    if dtype == "float8_e4m3fn":
        numbers[[0x7F, 0xFF]] = np.nan
    elif dtype == "float8_e5m2":
        numbers[[0x7C, 0xFC]] = (np.inf, -np.inf)
        numbers[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    else:
        numbers[0x80] = np.nan
    return numbers.astype(np.float32)


@functools.cache
def _exponent_numbers() -> npt.NDArray[np.float32]:
    numbers = np.exp2(np.arange(256.0) - 127)
    numbers[255] = np.nan
    return numbers.astype(np.float32)
