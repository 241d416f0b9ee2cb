"""Operand requirements of rules; calls that do not meet them fall back to fake tensors."""

from __future__ import annotations

from typing import Any

import torch

from .forms import Form, Sizes, UnfitError, contiguous_strides


def given(value: Any) -> Form:
    """Return a form, checking that it is not empty."""
    if type(value) is not Form or 0 in value.shape:
        raise UnfitError
    return value


def plain(value: Any) -> Form:
    """Return a form, checking that it is contiguous and floating-point."""
    form = given(value)
    if not form.is_contiguous or not form.dtype.is_floating_point:
        raise UnfitError
    return form


def are_numbers(*values: Any) -> bool:
    """Return whether all values are Python ints or floats, not symbols or booleans."""
    return all(type(value) in (int, float) for value in values)


def integers(value: Any, count: int) -> Sizes:
    """Return `count` integers from a list, or by repeating a single integer."""
    if type(value) is int:
        return (value,) * count
    if type(value) not in (tuple, list) or any(type(item) is not int for item in value):
        raise UnfitError
    if len(value) != count:
        if len(value) != 1:
            raise UnfitError
        return tuple(value) * count
    return tuple(value)


def sizes_of(sizes: tuple[Any, ...]) -> Sizes:
    """Return the sizes passed to a method, either as separate arguments or as a sequence."""
    if len(sizes) == 1 and type(sizes[0]) in (tuple, list, torch.Size):
        sizes = tuple(sizes[0])
    if not sizes or any(type(size) is not int for size in sizes):
        raise UnfitError
    return sizes


def axis_of(form: Form, dim: Any) -> int:
    """Return a non-negative axis index."""
    if type(dim) is not int or not -len(form.shape) <= dim < len(form.shape):
        raise UnfitError
    return dim % len(form.shape)


def strides_in(shape: Sizes, order: list[int]) -> Sizes:
    """Return the strides of a gap-free tensor whose axes lie in memory in `order`, outermost first.

    >>> strides_in((2, 3, 4), [0, 2, 1])
    (12, 1, 3)
    """
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def order_of(form: Form) -> list[int]:
    """Return the axes of a form in memory order, outermost first."""
    if any(step == 0 for step, size in zip(form.strides, form.shape, strict=True) if size != 1):
        raise UnfitError
    return sorted(range(len(form.shape)), key=form.strides.__getitem__, reverse=True)


def is_dense(form: Form) -> bool:
    """Return whether a form fills its memory without gaps or overlaps, in any axis order."""
    steps = strides_in(form.shape, order_of(form))
    return all(
        step == dense_step or size == 1
        for step, dense_step, size in zip(form.strides, steps, form.shape, strict=True)
    )


def has_channels_last(form: Form) -> bool:
    """Return whether a form is a gap-free channels-last image."""
    if len(form.shape) != 4 or 1 in form.shape[1:]:
        return False
    return form.strides == strides_in(form.shape, [0, 2, 3, 1])


def steps_like_channels_last(form: Form) -> bool:
    """Return whether the strides of an image count as channels-last, allowing gaps.

    >>> steps_like_channels_last(Form((1, 2, 3, 4), (40, 1, 8, 2), torch.float32))
    True
    """
    if len(form.shape) != 4 or form.strides[1] == 0:
        return False
    least = 0
    for axis in (1, 3, 2, 0):
        step, size = form.strides[axis], form.shape[axis]
        if step < least or (axis == 0 and least == form.strides[1]):
            return False
        least = step * max(size, 1)
    return True


def has_rows(form: Form) -> bool:
    """Return whether an image never counts as channels-last, whatever its gaps."""
    if len(form.shape) != 4:
        return len(form.shape) < 4
    return form.shape[3] != 1 and form.strides[3] < form.strides[1] * form.shape[1]


def is_ambiguous(form: Form) -> bool:
    """Return whether a contiguous image also counts as channels-last."""
    if form.strides == contiguous_strides(form.shape):
        return False
    return form.shape[1] == 1 or all(size == 1 for size in form.shape[2:])


def broadcast(left: Sizes, right: Sizes) -> Sizes:
    """Return the broadcast shape of two shapes."""
    if len(left) < len(right):
        left, right = right, left
    padded = (1,) * (len(left) - len(right)) + right
    sizes = []
    for left_size, right_size in zip(left, padded, strict=True):
        if left_size != right_size and 1 not in (left_size, right_size):
            raise UnfitError
        sizes.append(max(left_size, right_size))
    return tuple(sizes)
