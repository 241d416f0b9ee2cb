"""NumPy storage dtypes for the elements of each dtype."""

from __future__ import annotations

from collections.abc import Mapping

STORAGE: Mapping[str, str] = {
    "bool": "bool", "uint8": "u1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint16": "u2", "uint32": "u4", "uint64": "u8",
    "quint8": "u1", "qint8": "i1", "qint32": "i4",
    "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16",
    "bfloat16": "u2", "float8_e4m3fn": "u1", "float8_e5m2": "u1", "float8_e4m3fnuz": "u1",
    "float8_e5m2fnuz": "u1", "float8_e8m0fnu": "u1", "complex32": "u4",
}  # fmt: skip
"""The NumPy dtype that stores the elements of each dtype. Dtypes that NumPy lacks are stored as
unsigned integers with the same bits; complex32 has its real part in the low half."""
