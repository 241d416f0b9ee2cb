"""Handles that represent values of a torch sample in rules."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeAlias

from ...sample.arguments import Ref
from ...sample.symbols import Dim

Shape: TypeAlias = "tuple[Dim, ...]"


class RefusedError(Exception):
    """Raised by a rule for a call that it cannot translate; `translate` adds the position."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the translated sample, with its dtype and shape."""

    ref: Ref
    dtype: str
    shape: Shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def axis(self, axis: int) -> int:
        """Return the non-negative number of a dimension.

        Raises:
            RefusedError: there is no such dimension.

        >>> Tensor(Ref(0), "float32", (2, 3)).axis(-1)
        1
        """
        if not -max(self.ndim, 1) <= axis < max(self.ndim, 1):
            raise RefusedError(f"A tensor of {self.ndim} dimensions has no dimension {axis}.")
        return axis % self.ndim if self.ndim else 0

    def static(self, axis: int) -> int:
        """Return the size of a dimension with a known size.

        Raises:
            RefusedError: the size is an expression over the symbols.
        """
        size = self.shape[self.axis(axis)]
        if not isinstance(size, int):
            raise RefusedError(f"The size `{size}` of a dimension must be known.")
        return size


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A Python number that the sample computes at run time; `kind` is bool, int or float."""

    ref: Ref
    kind: type[Any]


_RANK = {
    "bool": 0, "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "float16": 6, "bfloat16": 6, "float32": 7, "float64": 8, "complex64": 9, "complex128": 10,
}  # fmt: skip


def category(dtype: str) -> int:
    """Return 0, 1, 2 or 3 for a dtype of booleans, integers, floats or complex numbers.

    >>> category("uint8"), category("bfloat16")
    (1, 2)
    """
    if dtype == "bool":
        return 0
    if dtype.startswith(("int", "uint")):
        return 1
    return 3 if dtype.startswith("complex") else 2


def category_of_number(number: Any) -> int:
    """Return the category of a Python number."""
    kind = number.kind if isinstance(number, Number) else type(number)
    return (bool, int, float, complex).index(kind)


def promoted(*operands: Any) -> str:
    """Return the dtype in which torch computes with these tensors and numbers.

    Tensors with dimensions determine the dtype; tensors without dimensions, and then numbers, only
    matter if they have a higher category.

    >>> promoted(Tensor(Ref(0), "int64", (2,)), 0.5)
    'float32'
    >>> promoted(Tensor(Ref(0), "float16", (2,)), Tensor(Ref(1), "float32", ()))
    'float16'
    """
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    numbers = [operand for operand in operands if not isinstance(operand, Tensor)]
    groups = [
        [tensor.dtype for tensor in tensors if tensor.ndim],
        [tensor.dtype for tensor in tensors if not tensor.ndim],
        [_OF_NUMBERS[category_of_number(number)] for number in numbers],
    ]
    result = ""
    for group in filter(None, groups):
        dtype = functools.reduce(_higher, group)
        if not result or category(dtype) > category(result):
            result = dtype
    return result


_OF_NUMBERS = ("bool", "int64", "float32", "complex64")


def _higher(left: str, right: str) -> str:
    if left == right:
        return left
    if {left, right} == {"float16", "bfloat16"}:
        return "float32"
    if {left, right} == {"uint8", "int8"}:
        return "int16"
    if {left, right} == {"complex64", "float64"}:
        return "complex128"
    if not {left, right} <= _RANK.keys():
        raise RefusedError(f"`{left}` and `{right}` have no common dtype in paddle.")
    return max(left, right, key=_RANK.__getitem__)
