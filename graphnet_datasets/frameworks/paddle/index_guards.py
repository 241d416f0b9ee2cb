"""Argument checks for Paddle's indexing operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MaterializeError, MemoryLimitError
from .argument_kinds import is_tensor, shape_of
from .operators import CORE

MAX_BINS = 2**27
_WAYS = ("assign", "add", "mul", "multiply", "mean", "amax", "amin")
_INTEGERS = ("int32", "int64")


def dtype_name(tensor: Any) -> str:
    """Return the name of a tensor's dtype.

    >>> import paddle
    >>> dtype_name(paddle.zeros([1], "int64"))
    'int64'
    """
    return str(tensor.dtype).rpartition(".")[2].lower()


def check_indices(indices: Any) -> None:
    """Raise unless the indices are int32 or int64.

    Raises:
        MaterializeError: the indices have another dtype.
    """
    if is_tensor(indices) and dtype_name(indices) not in _INTEGERS:
        raise MaterializeError(
            f"Expected indices of dtype int32 or int64, got {dtype_name(indices)}."
        )


def _check_extreme(args: Sequence[Any]) -> None:
    shape = shape_of(args[0])
    _check_index_dtype(args[4])
    if shape is not None and 0 in shape:
        raise MaterializeError(f"Expected a non-empty tensor, got shape {list(shape)}.")


def _check_index_dtype(dtype: Any) -> None:
    if str(dtype).rpartition(".")[2].lower() not in _INTEGERS:
        raise MaterializeError(f"Expected an index dtype of int32 or int64, got {dtype}.")


def _check_unique(args: Sequence[Any]) -> None:
    shape, axes = shape_of(args[0]), args[4]
    _check_index_dtype(args[5])
    if len(axes) > 1 or (shape is not None and 0 in shape):
        raise MaterializeError(
            f"Expected a non-empty tensor and at most one axis, got axes {list(axes)}."
        )
    if axes and shape is not None and not -1 <= axes[0] < len(shape):  # -2 crashes the process
        raise MaterializeError(f"Expected an axis in [-1, {len(shape)}), got {axes[0]}.")


def _check_bins(args: Sequence[Any]) -> None:
    tensor, weights, least = args
    shape = shape_of(tensor)
    check_indices(tensor)
    if shape is not None and len(shape) != 1:
        raise MaterializeError(f"Expected a vector, got shape {list(shape)}.")
    if weights is not None and shape_of(weights) != shape:
        raise MaterializeError("Expected the weights to have the shape of the input.")
    if type(least) is int and not 0 <= least <= MAX_BINS:
        raise MemoryLimitError(
            f"Expected `minlength` to be in [0, {MAX_BINS}], got {least}. Skip the sample."
        )


def _check_put_along_axis(args: Sequence[Any]) -> None:
    tensor, indices, values, axis, way, _ = args
    shape, places, value_shape = map(shape_of, (tensor, indices, values))
    check_indices(indices)
    if way not in _WAYS or tensor.dtype != values.dtype:
        raise MaterializeError(
            f"Expected values of dtype {dtype_name(tensor)} and a reduction of "
            f"{', '.join(_WAYS)}, got {dtype_name(values)} and {way!r}."
        )
    if shape is None or places is None or value_shape is None:
        return
    at = axis % len(shape)
    fits = len(places) == len(shape) and value_shape == places and 0 not in (*shape, *places)
    if not fits or any(
        mine > theirs and axis_index != at
        for axis_index, (mine, theirs) in enumerate(zip(places, shape, strict=True))
    ):
        raise MaterializeError(
            f"Expected indices and values of the same non-empty shape within {list(shape)} (except "
            f"along axis {axis}), got {list(places)} and {list(value_shape)}."
        )


def _check_index_put(args: Sequence[Any]) -> None:
    tensor, indices, values = args[:3]
    shapes = [shape_of(item) for item in indices]
    shape, value_shape = shape_of(tensor), shape_of(values)
    if tensor.dtype != values.dtype:
        raise MaterializeError(
            f"Expected values of dtype {dtype_name(tensor)}, got {dtype_name(values)}."
        )
    masks = [dtype_name(item) == "bool" for item in indices]
    if any(masks) and len(indices) > 1:
        raise MaterializeError("Expected a boolean mask to be the only index.")
    if not any(masks):
        for item in indices:
            check_indices(item)
    if shape is None or value_shape is None or None in shapes:
        return
    known_shapes = [item for item in shapes if item is not None]
    if 0 in shape or any(0 in item for item in known_shapes):
        raise MaterializeError("Expected non-empty operands.")
    if any(masks):
        mask = known_shapes[0]
        if mask != shape[: len(mask)] or not mask or value_shape not in ((), (1,)):
            raise MaterializeError(
                f"Expected a mask with the leading sizes of {list(shape)} and a single value, got "
                f"shapes {list(mask)} and {list(value_shape)}."
            )
        return
    if len(known_shapes) > len(shape):
        raise MaterializeError(
            f"Expected at most {len(shape)} indices for shape {list(shape)}, got "
            f"{len(known_shapes)}."
        )
    target = (*_broadcast(known_shapes), *shape[len(known_shapes) :])
    if len(value_shape) > len(target) or any(
        size not in (1, target_size)
        for size, target_size in zip(reversed(value_shape), reversed(target), strict=False)
    ):
        raise MaterializeError(
            f"Expected values that broadcast to shape {list(target)}, got {list(value_shape)}."
        )


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    result = []
    for sizes in itertools.zip_longest(*map(reversed, shapes), fillvalue=1):
        others = set(sizes) - {1}
        if len(others) > 1:
            raise MaterializeError(
                "Expected indices of broadcastable shapes, got "
                f"{', '.join(str(list(shape)) for shape in shapes)}."
            )
        result.append(others.pop() if others else 1)
    return tuple(reversed(result))


def _check_index_add(args: Sequence[Any]) -> None:
    tensor, index, values, axis = args
    shape, places, value_shape = map(shape_of, (tensor, index, values))
    check_indices(index)
    if tensor.dtype != values.dtype:
        raise MaterializeError(
            f"Expected values of dtype {dtype_name(tensor)}, got {dtype_name(values)}."
        )
    if shape is None or places is None or value_shape is None:
        return
    at = axis % len(shape)
    if len(places) != 1 or 0 in (*shape, *places):
        raise MaterializeError(
            "Expected a non-empty tensor and a non-empty index vector, got shapes "
            f"{list(shape)} and {list(places)}."
        )
    expected = (*shape[:at], places[0], *shape[at + 1 :])
    if value_shape != expected:
        raise MaterializeError(
            f"Expected values of shape {list(expected)}, got {list(value_shape)}."
        )


def _check_draws(args: Sequence[Any]) -> None:
    tensor, number, is_repeated = args
    shape = shape_of(tensor)
    if shape is None:
        return
    if len(shape) not in (1, 2) or 0 in shape or number < 1:
        raise MaterializeError(
            "Expected a non-empty vector or matrix and at least one sample, got shape "
            f"{list(shape)} and {number} samples."
        )
    if number > MAX_BINS or (not is_repeated and number > shape[-1]):
        limit = MAX_BINS if is_repeated else min(shape[-1], MAX_BINS)
        raise MaterializeError(f"Expected at most {limit} samples, got {number}.")


def _check_unfolded(args: Sequence[Any]) -> None:
    tensor, axis, size, step = args
    shape = shape_of(tensor)
    if shape is None:
        return
    if not 0 < size <= shape[axis] or step < 1:
        raise MaterializeError(
            f"Expected a window size in [1, {shape[axis]}] and a step of at least 1, got {size} "
            f"and {step}."
        )


def _check_set_part(tensor: Any, lists: Sequence[Any]) -> None:
    shape, count = shape_of(tensor), len(lists[3])
    starts, ends, steps, axes, removed, added = lists
    lengths = {
        len(new_axis) for new_axis in (starts, ends, steps) if isinstance(new_axis, (list, tuple))
    }
    if lengths - {count} or (isinstance(steps, (list, tuple)) and 0 in steps):
        raise MaterializeError(
            f"Expected {count} starts, ends and non-zero steps for axes {list(axes)}, got "
            f"{starts}, {ends} and {steps}."[:300]
        )
    if len(added) > 9 or any(not 0 <= new_axis <= 9 for new_axis in added):
        raise MaterializeError(f"Expected at most 9 new axes in [0, 9], got {list(added)[:10]}.")
    if shape is None:
        return
    for group in (axes, removed):
        if len(set(group)) != len(group) or any(not 0 <= axis < len(shape) for axis in group):
            raise MaterializeError(
                f"Expected distinct axes in [0, {len(shape)}), got {list(group)}."
            )
    if 0 in shape:
        raise MaterializeError(f"Expected a non-empty tensor, got shape {list(shape)}.")


def _check_set_tensor(args: Sequence[Any]) -> None:
    _check_set_part(args[0], args[2:8])
    if args[0].dtype != args[1].dtype or 0 in (shape_of(args[1]) or ()):
        raise MaterializeError(
            f"Expected non-empty values of dtype {dtype_name(args[0])}, got shape "
            f"{list(args[1].shape)} and dtype {dtype_name(args[1])}."
        )


def _check_set_numbers(args: Sequence[Any]) -> None:
    _check_set_part(args[0], args[1:7])
    shape, numbers = args[7], args[8]
    if any(size < 1 for size in shape) or math.prod(shape) != len(numbers):
        raise MaterializeError(
            f"Expected as many values as shape {list(shape)[:10]} has elements, got {len(numbers)}."
        )


def _check_labels(args: Sequence[Any]) -> None:
    tensor, label, is_soft, *_, axis = args
    shape, labels = shape_of(tensor), shape_of(label)
    if is_soft and tensor.dtype != label.dtype:
        raise MaterializeError(
            f"Expected soft labels of dtype {dtype_name(tensor)}, got {dtype_name(label)}."
        )
    if not is_soft:
        check_indices(label)
    if shape is None or labels is None:
        return
    at = axis % len(shape)
    wanted = shape if is_soft else (*shape[:at], 1, *shape[at + 1 :])
    if labels != wanted or 0 in shape:
        raise MaterializeError(
            f"Expected labels of shape {list(wanted)}, without empty axes, got {list(labels)}."
        )


CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}argmax": _check_extreme,
    f"{CORE}argmin": _check_extreme,
    f"{CORE}unique": _check_unique,
    f"{CORE}bincount": _check_bins,
    f"{CORE}put_along_axis": _check_put_along_axis,
    f"{CORE}index_put": _check_index_put,
    f"{CORE}index_add": _check_index_add,
    f"{CORE}multinomial": _check_draws,
    f"{CORE}tensor_unfold": _check_unfolded,
    f"{CORE}set_value_": _check_set_numbers,
    f"{CORE}set_value": _check_set_numbers,
    f"{CORE}set_value_with_tensor": _check_set_tensor,
    f"{CORE}cross_entropy_with_softmax": _check_labels,
}
