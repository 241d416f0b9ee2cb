"""Scalar types of the language and their joins."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class ScalarType:
    """A numeric type; `bool` is a one-bit unsigned integer."""

    name: str
    kind: Literal["uint", "int", "float"]
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def is_bool(self) -> bool:
        """True for `bool`."""
        return self.bits == 1

    @property
    def is_integral(self) -> bool:
        """True for integer types other than `bool`."""
        return self.kind != "float" and self.bits > 1

    @property
    def is_float(self) -> bool:
        """True for floating-point types."""
        return self.kind == "float"

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return max(1, self.bits // 8)

    @property
    def compute(self) -> ScalarType:
        """The type used for computation: float32 for 16-bit floats, otherwise the type itself."""
        return FLOAT32 if self.kind == "float" and self.bits == 16 else self

    def least(self) -> int | float:
        """Return the smallest value, the identity of `max=`."""
        if self.is_float:
            return float("-inf")
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    def greatest(self) -> int | float:
        """Return the largest value, the identity of `min=`."""
        if self.is_float:
            return float("inf")
        return (1 << (self.bits - (self.kind == "int"))) - 1


BOOL = ScalarType("bool", "uint", 1)
UINT8, UINT16, UINT32, UINT64 = (ScalarType(f"uint{n}", "uint", n) for n in (8, 16, 32, 64))
INT8, INT16, INT32, INT64 = (ScalarType(f"int{n}", "int", n) for n in (8, 16, 32, 64))
FLOAT16 = ScalarType("float16", "float", 16)
BFLOAT16 = ScalarType("bfloat16", "float", 16)
FLOAT32 = ScalarType("float32", "float", 32)
FLOAT64 = ScalarType("float64", "float", 64)

SCALAR_TYPES = {
    scalar_type.name: scalar_type
    for scalar_type in (
        *(BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64),
        *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64),
    )
}
SPELLINGS = {**SCALAR_TYPES, "float": FLOAT32, "double": FLOAT64}
"""Every spelling of a scalar type in the grammar."""


def join(left: ScalarType, right: ScalarType) -> ScalarType:
    """Return the type that represents values of both types.

    A float wins over an integer, and the wider of two types of one kind wins. An unsigned and a
    signed integer join to the signed type of the larger width, and the two 16-bit floats
    to float32.

    >>> join(UINT64, INT32).name, join(FLOAT16, INT64).name, join(BOOL, UINT8).name
    ('int64', 'float16', 'uint8')
    """
    if left == right:
        return left
    if left.is_float or right.is_float:
        if left.is_float and right.is_float:
            if left.bits == right.bits:
                return FLOAT32
            return left if left.bits > right.bits else right
        return left if left.is_float else right
    if left.kind == right.kind:
        return left if left.bits > right.bits else right
    signed, unsigned = (left, right) if left.kind == "int" else (right, left)
    return SCALAR_TYPES[f"int{max(signed.bits, unsigned.bits)}"]


def holds(target: ScalarType, value: ScalarType) -> bool:
    """Return whether a variable of type `target` accepts values of type `value` without a cast."""
    return join(target, value) == target
