"""The scalar types of the language and how two of them join."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class ScalarType:
    """A type of numbers; `bool` is an unsigned integer of one bit."""

    name: str
    kind: Literal["uint", "int", "float"]
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def is_bool(self) -> bool:
        """Whether it is `bool`."""
        return self.bits == 1

    @property
    def is_integral(self) -> bool:
        """Whether it is a type of integers; `bool` does not count as one."""
        return self.kind != "float" and self.bits > 1

    @property
    def is_float(self) -> bool:
        """Whether it is a type of floating-point numbers."""
        return self.kind == "float"

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return max(1, self.bits // 8)

    @property
    def compute(self) -> ScalarType:
        """The type that its values are computed in: float32 for the 16-bit floats, else itself."""
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
    each.name: each
    for each in (
        *(BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64),
        *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64),
    )
}
SPELLINGS = {**SCALAR_TYPES, "float": FLOAT32, "double": FLOAT64}
"""Every word of the grammar that names a scalar type."""


def join(left: ScalarType, right: ScalarType) -> ScalarType:
    """Return the type that holds values of both.

    Equal stays; a float beats an integer; the wider of a kind wins; unsigned with signed gives
    signed of the wider width. The two 16-bit floats join to float32.

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
    """Tell whether a variable of type `target` takes values of type `value` without a cast."""
    return join(target, value) == target
