"""Evaluation of an instance with NumPy: the reference semantics of Tensor Comprehensions.

The box of each statement is cut into pieces that fit in memory. In a piece, an index is an array
along its own axis, and a load is a strided view or a gather. Floats are accumulated in float64 and
rounded at the end of the statement; with `float64` nothing is rounded, which is the reference for
compiled code. Sums of products of plain loads use `einsum`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import KernelInputError
from .affine import Affine
from .arrays import convert, numpy_dtype
from .evaluation import Evaluator, strided_view
from .expressions import Binary, Cast, Expression, Load
from .instance import Instance, InstanceStatement, Tensor
from .types import ScalarType

Array = np.ndarray[Any, Any]
Box = dict[str, tuple[int, int]]

_PIECE_POINTS = 1 << 20
_PIECE_OPERAND = 1 << 23
_REDUCE = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}


def interpret(
    instance: Instance,
    inputs: Sequence[Any],
    outputs: Mapping[str, Any] | None = None,
    *,
    float64: bool = False,
) -> tuple[Array, ...]:
    """Return the outputs of an instance.

    Args:
        instance: the definition at the sizes of the inputs.
        inputs: arrays of the shapes and dtypes of `instance.inputs`, or objects that NumPy converts
            to such arrays; bfloat16 is passed as float32.
        outputs: initial contents of accumulated outputs; not modified.
        float64: compute and return every float as float64.

    Raises:
        KernelInputError: an input is missing or has the wrong shape or dtype, or a subscript that
            was assumed to be in range is not.
    """
    arrays: dict[str, Array] = {}
    if len(inputs) != len(instance.inputs):
        raise KernelInputError(
            f"`{instance.name}` takes {len(instance.inputs)} inputs, got {len(inputs)}. Pass one "
            "array for each input."
        )
    for tensor, value in zip(instance.inputs, inputs, strict=True):
        arrays[tensor.name] = _convert_input(tensor, value, float64)
    for tensor in (*instance.outputs, *instance.temporaries):
        arrays[tensor.name] = np.zeros(tensor.shape, numpy_dtype(tensor.dtype, float64=float64))
        if tensor.is_updated:
            if tensor.name not in (outputs or {}):
                raise KernelInputError(
                    f"`{instance.name}` accumulates into `{tensor.name}`, which has no "
                    f"contents. Pass them as `outputs={{'{tensor.name}': …}}`."
                )
            value = (outputs or {})[tensor.name]
            arrays[tensor.name] = _convert_input(tensor, value, float64).copy()
    with np.errstate(all="ignore"):
        for statement in instance.statements:
            _execute(instance, statement, arrays, float64)
    return tuple(arrays[tensor.name] for tensor in instance.outputs)


def _convert_input(tensor: Tensor, value: Any, float64: bool) -> Array:
    array = np.asarray(value)
    expected = numpy_dtype(tensor.dtype)
    is_number = array.ndim == 0 and not isinstance(value, np.ndarray | np.generic)
    if array.shape != tensor.shape:
        raise KernelInputError(
            f"`{tensor.name}` has shape {array.shape}, expected {tensor.shape}. Reshape it."
        )
    wide = float64 and tensor.dtype.is_float and array.dtype == np.float64
    if array.dtype != expected and not is_number and not wide:
        raise KernelInputError(
            f"`{tensor.name}` is {array.dtype}, expected {expected}. Convert it."
        )
    return np.ascontiguousarray(convert(array, tensor.dtype, float64=float64)).reshape(array.shape)


def _execute(
    instance: Instance, statement: InstanceStatement, arrays: dict[str, Array], float64: bool
) -> None:
    tensor = instance.tensor(statement.output)
    target = arrays[tensor.name]
    if statement.scan is not None:
        _execute_scan(instance, statement, arrays, float64)
        return
    if statement.operator == "=":
        total = np.empty(tensor.shape, numpy_dtype(statement.type, float64=float64))
    else:
        wide = numpy_dtype(statement.type, float64=True)
        total = target.astype(wide)
        if statement.initialises:
            total[...] = statement.identity
    factors = _factors(statement)
    box = statement.box
    if factors and all(_is_inside(load, instance, box) for load in factors):
        for piece in pieces(box, lambda part: _largest(factors, part), _PIECE_OPERAND):
            _contract(instance, statement, factors, arrays, total, piece)
    else:
        for piece in pieces(box, _points, _PIECE_POINTS):
            evaluator = Evaluator(instance, arrays, piece, float64)
            value = evaluator.value(statement.value)
            if statement.target is not None:
                _scatter(statement, evaluator, tensor, total, value)
            else:
                _accumulate(statement, tensor, total, piece, value)
    arrays[tensor.name] = convert(total, tensor.dtype, float64=float64)


def _execute_scan(
    instance: Instance, statement: InstanceStatement, arrays: dict[str, Array], float64: bool
) -> None:
    """Assign the elements for one value of the scanned index after the other."""
    tensor, scan = instance.tensor(statement.output), statement.scan
    assert scan is not None  # noqa: S101 (checked by the caller)
    begin, end = statement.box[scan.index]
    values = range(begin, end)
    for place in reversed(values) if scan.is_descending else values:
        box = {**statement.box, scan.index: (place, place + 1)}
        for piece in pieces(box, _points, _PIECE_POINTS):
            value = Evaluator(instance, arrays, piece, float64).value(statement.value)
            value = convert(value, tensor.dtype, float64=float64)
            _accumulate(statement, tensor, arrays[tensor.name], piece, value)


def _scatter(
    statement: InstanceStatement, evaluator: Evaluator, tensor: Tensor, total: Array, value: Any
) -> None:
    """Combine the values at the points of a piece with the elements that they update."""
    assert statement.target is not None  # noqa: S101 (checked by the caller)
    shape = tuple(end - begin for begin, end in evaluator.piece.values())
    is_inside: Any = True
    coordinates = []
    for dimension, subscript in enumerate(statement.target.subscripts):
        coordinate = evaluator.subscript(subscript, True) - tensor.origin[dimension]
        inside = (coordinate >= 0) & (coordinate < tensor.shape[dimension])
        if statement.target.checks[dimension] != "clamp" and not np.all(inside):
            raise KernelInputError(
                f"The scatter into `{tensor.name}` leaves its dimension {dimension}, which has "
                f"{tensor.shape[dimension]} elements. Pass `check_bounds=True` to skip such points."
            )
        is_inside = is_inside & inside
        coordinates.append(np.broadcast_to(coordinate, shape))
    is_inside = np.broadcast_to(is_inside, shape)
    places = tuple(coordinate[is_inside] for coordinate in coordinates)
    combine: Any = _REDUCE[statement.operator]
    combine.at(total, places, np.broadcast_to(value, shape)[is_inside])


def _accumulate(
    statement: InstanceStatement, tensor: Tensor, total: Array, piece: Box, value: Any
) -> None:
    """Reduce the values at the points of a piece into the output."""
    region = _region(statement, tensor, piece)
    full = np.broadcast_to(value, tuple(end - begin for begin, end in piece.values()))
    if statement.operator == "=":
        total[region] = full
        return
    reduce = _REDUCE[statement.operator]
    axes = tuple(range(len(statement.subscripts), len(piece)))
    if axes:
        full = reduce.reduce(full, axis=axes, dtype=total.dtype)
    total[region] = reduce(total[region], full)


def _region(statement: InstanceStatement, tensor: Tensor, piece: Box) -> tuple[slice, ...]:
    return tuple(
        slice(piece[name][0] - origin, piece[name][1] - origin)
        for name, origin in zip(statement.subscripts, tensor.origin, strict=True)
    )


def _factors(statement: InstanceStatement) -> list[Load]:
    """Return the loads whose product a float sum accumulates, or [] for any other statement."""
    if statement.operator != "+" or not statement.type.is_float or statement.target is not None:
        return []
    loads: list[Load] = []
    stack: list[Expression] = [statement.value]
    while stack:
        node = stack.pop()
        match node:
            case Binary(operator="*"):
                stack += (node.right, node.left)
            case Cast() if _keeps_value(node.operand.type, node.type):
                stack.append(node.operand)
            case Load() if node.type.is_float and not node.is_guarded and not any(node.checks):
                loads.append(node)
            case _:
                return []
    named = {name for load in loads for name in _names(load)}
    return loads if named == {index.name for index in statement.indices} else []


def _names(load: Load) -> set[str]:
    """Return the indices that the affine subscripts of a load depend on."""
    affine = [subscript for subscript in load.subscripts if isinstance(subscript, Affine)]
    return {name for subscript in affine for name in subscript.names}


def _keeps_value(old: ScalarType, new: ScalarType) -> bool:
    return old.is_float and new.is_float and new.bits >= old.bits


def _is_inside(load: Load, instance: Instance, box: Box) -> bool:
    return strided_view(np.empty(()), load, instance.tensor(load.tensor), box, dry=True) is not None


def _contract(
    instance: Instance,
    statement: InstanceStatement,
    factors: list[Load],
    arrays: dict[str, Array],
    total: Array,
    piece: Box,
) -> None:
    """Add the sum of products over a piece."""
    axes = {name: axis for axis, name in enumerate(piece)}
    operands: list[Any] = []
    for load in factors:
        tensor = instance.tensor(load.tensor)
        wide = arrays[load.tensor].astype(np.float64, copy=False)
        view = strided_view(wide, load, tensor, piece)
        assert view is not None  # noqa: S101 - `_is_inside` holds for the whole box
        operand_axes = [axes[name] for name in piece if view.shape[axes[name]] > 1]
        operands += [view.reshape([view.shape[axis] for axis in operand_axes]), operand_axes]
    # An index with a single value has no axis in the operands; its output axis has size 1.
    seen = {axis for operand_axes in operands[1::2] for axis in operand_axes}
    result_axes = [axes[name] for name in statement.subscripts]
    product = np.einsum(*operands, [axis for axis in result_axes if axis in seen], optimize=True)
    region = _region(statement, instance.tensor(statement.output), piece)
    total[region] += product.reshape(
        [piece[name][1] - piece[name][0] for name in statement.subscripts]
    )


def pieces(box: Box, cost: Any, limit: int) -> Iterator[Box]:
    """Cut a box into parts that cost at most `limit`, by halving the longest side."""
    stack = [dict(box)]
    while stack:
        piece = stack.pop()
        name = max(piece, key=lambda index: piece[index][1] - piece[index][0], default="")
        if not name or cost(piece) <= limit or piece[name][1] - piece[name][0] == 1:
            yield piece
            continue
        begin, end = piece[name]
        middle = (begin + end) // 2
        stack += ({**piece, name: (middle, end)}, {**piece, name: (begin, middle)})


def _points(box: Box) -> int:
    product = 1
    for begin, end in box.values():
        product *= end - begin
    return product


def _largest(loads: list[Load], box: Box) -> int:
    return max(_points({name: box[name] for name in _names(load)}) for load in loads)
