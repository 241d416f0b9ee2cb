"""What the operands of a rule must be; all else is left to fake tensors."""

from __future__ import annotations

from typing import Any

import torch

from .forms import Form, Sizes, UnfitError, contiguous_strides


def given(value: Any) -> Form:
    """Return a form that has elements."""
    if type(value) is not Form or 0 in value.shape:
        raise UnfitError
    return value


def plain(value: Any) -> Form:
    """Return a contiguous form of floating-point numbers."""
    form = given(value)
    if not form.is_contiguous or not form.dtype.is_floating_point:
        raise UnfitError
    return form


def integers(value: Any, count: int) -> Sizes:
    """Return `count` integers, given one by one or one for all."""
    if type(value) is int:
        return (value,) * count
    if type(value) not in (tuple, list) or any(type(each) is not int for each in value):
        raise UnfitError
    if len(value) != count:
        if len(value) != 1:
            raise UnfitError
        return tuple(value) * count
    return tuple(value)


def sizes_of(sizes: tuple[Any, ...]) -> Sizes:
    """Return the sizes that a method was given, one by one or together."""
    if len(sizes) == 1 and type(sizes[0]) in (tuple, list, torch.Size):
        sizes = tuple(sizes[0])
    if not sizes or any(type(each) is not int for each in sizes):
        raise UnfitError
    return sizes


def axis_of(form: Form, dim: Any) -> int:
    """Return an axis, counted from the first one."""
    if type(dim) is not int or not -len(form.shape) <= dim < len(form.shape):
        raise UnfitError
    return dim % len(form.shape)


def is_ambiguous(form: Form) -> bool:
    """Tell whether a contiguous image counts as one with its channels last, too."""
    if form.strides == contiguous_strides(form.shape):
        return False
    return form.shape[1] == 1 or all(size == 1 for size in form.shape[2:])
