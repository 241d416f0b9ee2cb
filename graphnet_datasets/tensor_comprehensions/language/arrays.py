"""NumPy dtypes of the language's scalar types; bfloat16 is stored as rounded float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from .types import BFLOAT16, BOOL, ScalarType


def numpy_dtype(type_: ScalarType, *, float64: bool = False) -> np.dtype[Any]:
    """Return the dtype that stores a type; with `float64`, every float type maps to float64."""
    if type_.is_float and float64:
        return np.dtype(np.float64)
    return np.dtype("float32" if type_ == BFLOAT16 else type_.name)


def convert(array: Any, type_: ScalarType, *, float64: bool = False) -> Any:
    """Convert values like the language's casts: truncate, wrap around or round."""
    if type_ == BOOL:
        return np.asarray(array) != 0
    if type_ == BFLOAT16 and not float64:
        return round_to_bfloat16(np.asarray(array, dtype=np.float32))
    return np.asarray(array).astype(numpy_dtype(type_, float64=float64))


def round_to_bfloat16(array: Any) -> Any:
    """Round float32 values to the nearest bfloat16, ties to even.

    >>> round_to_bfloat16(np.float32([1.001, 3.0])).tolist()
    [1.0, 3.0]
    """
    bits = np.asarray(array, dtype=np.float32, order="C").view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(array), array, rounded.view(np.float32))
