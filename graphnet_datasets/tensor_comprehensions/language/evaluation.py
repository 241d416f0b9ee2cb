"""Evaluation of expressions with NumPy over a piece of a box."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import KernelInputError, TensorComprehensionError
from .affine import Affine
from .arrays import convert, numpy_dtype
from .expressions import (
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Index,
    Load,
    Select,
    Unary,
)
from .functions import numpy_function
from .instance import Instance, Tensor

Array = np.ndarray[Any, Any]
Box = dict[str, tuple[int, int]]

_OPERATORS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "%": np.remainder,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


class Evaluator:
    """Evaluates expressions over a piece; arrays have one axis per index of the statement."""

    def __init__(
        self, instance: Instance, arrays: dict[str, Array], piece: Box, float64: bool
    ) -> None:
        self.instance = instance
        self.arrays = arrays
        self.piece = piece
        self.float64 = float64
        self.axes = {name: axis for axis, name in enumerate(piece)}

    def value(self, node: Expression, mask: Any = True) -> Any:
        """Return the value of a node at the points of `mask`; other points are unspecified."""
        match node:
            case Constant():
                return numpy_dtype(node.type, float64=self.float64).type(node.value)
            case Index():
                return self.index(node.name).astype(np.int32)
            case Unary(operator="!"):
                return ~np.asarray(self.value(node.operand, mask))
            case Unary():
                return np.negative(self.value(node.operand, mask))
            case Binary():
                return self.binary(node, mask)
            case Select():
                condition = self.value(node.condition, mask)
                positive = self.value(node.positive, mask & condition)
                negative = self.value(node.negative, mask & ~np.asarray(condition))
                return np.where(condition, positive, negative)
            case Cast():
                return convert(self.value(node.operand, mask), node.type, float64=self.float64)
            case Call():
                return self.call(node, mask)
            case Load():
                return self.load(node, mask)
            case _:
                raise TensorComprehensionError(
                    f"{type(node).__name__} cannot occur in an instance."
                )

    def index(self, name: str) -> Array:
        """Return the values of an index along its axis, as int64."""
        begin, end = self.piece[name]
        shape = [1] * len(self.piece)
        shape[self.axes[name]] = end - begin
        return np.arange(begin, end, dtype=np.int64).reshape(shape)

    def binary(self, node: Binary, mask: Any) -> Any:
        """Return the value of a binary operator."""
        left = self.value(node.left, mask)
        if node.operator in ("&&", "||"):
            is_and = node.operator == "&&"
            right = self.value(node.right, mask & (left if is_and else ~np.asarray(left)))
            return np.logical_and(left, right) if is_and else np.logical_or(left, right)
        right = self.value(node.right, mask)
        if node.operator == "/":
            divide = np.true_divide if node.left.type.is_float else np.floor_divide
            return divide(left, right)
        if node.operator == "min":
            return np.where(left < right, left, right)
        if node.operator == "max":
            return np.where(left > right, left, right)
        return _OPERATORS[node.operator](left, right)

    def call(self, node: Call, mask: Any) -> Any:
        """Return the value of a function call, computed in float64."""
        function = numpy_function(node.function)
        if function is None:
            raise TensorComprehensionError(
                f"The interpreter cannot evaluate `{node.function}`. Register the function with "
                "`numpy=`."
            )
        dtype = numpy_dtype(node.type, float64=self.float64)
        arguments = [np.asarray(self.value(argument, mask)) for argument in node.arguments]
        if node.function != "nextafter":  # the neighbour in float64 is a different number
            arguments = [argument.astype(np.float64) for argument in arguments]
        return np.asarray(function(*arguments)).astype(dtype)

    def load(self, node: Load, mask: Any) -> Any:
        """Return the elements of a tensor that a load reads."""
        tensor = self.instance.tensor(node.tensor)
        array = self.arrays[node.tensor]
        view = strided_view(array, node, tensor, self.piece)
        if view is not None:
            return view
        if not array.size and not np.any(mask):
            return array.dtype.type(0)
        coordinates = []
        for dimension, subscript in enumerate(node.subscripts):
            coordinate = self.subscript(subscript, mask) - tensor.origin[dimension]
            last = tensor.shape[dimension] - 1
            clamped = np.clip(coordinate, 0, last)
            is_outside = (clamped != coordinate) & mask
            if node.checks[dimension] != "clamp" and np.any(is_outside):
                value = (
                    np.broadcast_to(coordinate, is_outside.shape)[is_outside].flat[0]
                    + tensor.origin[dimension]
                )
                raise KernelInputError(
                    f"`{self.instance.name}` reads `{node.tensor}` at {value} along dimension "
                    f"{dimension}, which has the range {tensor.origin[dimension]}:"
                    f"{tensor.origin[dimension] + tensor.shape[dimension]}. Pass "
                    "`check_bounds=True` to clamp the subscript."
                )
            coordinates.append(clamped)
        return array[tuple(coordinates)]

    def subscript(self, subscript: Affine | Expression, mask: Any) -> Array:
        """Return the values of a subscript as int64."""
        if not isinstance(subscript, Affine):
            return np.asarray(self.value(subscript, mask)).astype(np.int64)
        total = np.full((1,) * len(self.piece), subscript.constant, dtype=np.int64)
        for name, factor in subscript.coefficients:
            total = total + factor * self.index(name)
        return total


def strided_view(
    array: Array, load: Load, tensor: Tensor, box: Box, *, dry: bool = False
) -> Array | None:
    """Return the elements of a load over a box as a view, or None if some are out of range.

    The view has an axis for every index of the box, of size 1 if the load does not depend on it.
    `array` must be contiguous. With `dry`, only the range is checked and `array` is returned.
    """
    offset = 0
    strides = dict.fromkeys(box, 0)
    used: set[str] = set()
    for dimension, subscript in enumerate(load.subscripts):
        if not isinstance(subscript, Affine):
            return None
        least, greatest = subscript.bounds(box)
        origin = tensor.origin[dimension]
        if least < origin or greatest >= origin + tensor.shape[dimension]:
            return None
        step = array.strides[dimension] if not dry else 0
        offset += (
            subscript.evaluate({name: box[name][0] for name in subscript.names}) - origin
        ) * step
        for name, factor in subscript.coefficients:
            strides[name] += factor * step
            used.add(name)
    if dry:
        return array
    shape = [end - begin if name in used else 1 for name, (begin, end) in box.items()]
    start = array.reshape(-1)[offset // array.itemsize :]
    return np.lib.stride_tricks.as_strided(start, shape, list(strides.values()), writeable=False)
