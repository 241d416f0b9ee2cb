"""Rules of `rules` for operators that copy: into another dtype, order or place, or side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .forms import CPU, Form, Sizes, UnfitError
from .rule_operands import (
    axis_of,
    given,
    has_rows,
    integers,
    is_ambiguous,
    is_dense,
    order_of,
    sizes_of,
    steps_like_channels_last,
    strides_in,
)


def contiguous(input: Any) -> Form:
    """Return the form of `contiguous`: a view, or a plain copy."""
    form = given(input)
    if form.is_contiguous:
        return form.with_view(form.shape, form.strides)
    return Form(form.shape, None, form.dtype)


def to(
    input: Any,
    *given_places: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: Any = False,
    copy: Any = False,
) -> Form:
    """Return the form of `to` on the CPU: a view if the dtype stays, else a copy."""
    form = given(input)
    for place in given_places:
        if type(place) is torch.dtype and dtype is None:
            dtype = place
        elif type(place) is torch.device and device is None:
            device = place
        elif place is not False:  # what says that the result has to be a copy
            raise UnfitError
    if device not in (None, CPU) or copy is not False or type(non_blocking) is not bool:
        raise UnfitError
    if dtype in (None, form.dtype):
        if dtype is None and device is None:
            raise UnfitError
        return form.with_view(form.shape, form.strides)
    if type(dtype) is not torch.dtype:
        raise UnfitError
    return Form(form.shape, _strides_of_copy(form), dtype)


def _strides_of_copy(form: Form) -> Sizes | None:
    """Return the strides of a copy: in the same order, or where memory has gaps or overlaps plain.

    Unless the steps are those of an image with its channels last, gaps or not.
    """
    if form.is_contiguous:
        return None
    if 0 not in form.strides and is_dense(form):
        return strides_in(form.shape, order_of(form))
    if len(form.shape) == 5:
        raise UnfitError
    return strides_in(form.shape, [0, 2, 3, 1]) if steps_like_channels_last(form) else None


def _into(dtype: torch.dtype) -> Callable[[Any], Form]:
    return lambda input: to(input, dtype)


def like_other(input: Any, other: Any) -> Form:
    """Return the form of a copy in the dtype of another tensor."""
    return to(input, given(other).dtype)


def cat(tensors: Any, dim: Any = 0) -> Form:
    """Return the form of tensors joined along an axis."""
    if type(tensors) not in (tuple, list) or not tensors:
        raise UnfitError
    # An empty list counts as nothing, whatever the others are: caches begin as one.
    forms = [given(each) for each in tensors if not _is_nothing(each)]
    if not forms:
        raise UnfitError
    if len(forms) < len(tensors):
        nothing = [each.dtype for each in tensors if _is_nothing(each)]
        if any(dtype != forms[0].dtype for dtype in nothing):
            raise UnfitError
    first = forms[0]
    axis = axis_of(first, dim)
    for each in forms:
        if (
            each.dtype != first.dtype
            or not (each.is_contiguous or has_rows(each))
            or len(each.shape) != len(first.shape)
            or each.shape[:axis] != first.shape[:axis]
            or each.shape[axis + 1 :] != first.shape[axis + 1 :]
            or (each.is_contiguous and len(each.shape) in (4, 5) and is_ambiguous(each))
        ):
            raise UnfitError
    size = sum(each.shape[axis] for each in forms)
    return Form((*first.shape[:axis], size, *first.shape[axis + 1 :]), None, first.dtype)


def _is_nothing(value: Any) -> bool:
    return type(value) is Form and value.shape == (0,)


def stack(tensors: Any, dim: Any = 0) -> Form:
    """Return the form of tensors joined along a new axis."""
    if type(tensors) not in (tuple, list) or not tensors:
        raise UnfitError
    forms = [given(each) for each in tensors]
    first, rank = forms[0], len(forms[0].shape)
    if type(dim) is not int or not -rank - 1 <= dim <= rank:
        raise UnfitError
    if any(each.shape != first.shape or each.dtype != first.dtype for each in forms):
        raise UnfitError
    is_plain = all(each.is_contiguous for each in forms) and 1 not in first.shape
    if rank in (3, 4) and not is_plain:  # what may count as an image with its channels last
        raise UnfitError
    axis = dim % (rank + 1)
    return Form((*first.shape[:axis], len(forms), *first.shape[axis:]), None, first.dtype)


def repeat(input: Any, *sizes: Any) -> Form:
    """Return the form of a tensor repeated along its axes."""
    form = given(input)
    counts = sizes_of(sizes)
    extra = len(counts) - len(form.shape)
    if extra < 0 or min(counts) < 1:
        raise UnfitError
    shape = (1,) * extra + form.shape
    return Form(
        tuple(size * count for size, count in zip(shape, counts, strict=True)), None, form.dtype
    )


def roll(input: Any, shifts: Any, dims: Any = None) -> Form:
    """Return the form of a tensor whose elements are shifted in a circle."""
    form = given(input)
    axes = (dims,) if type(dims) is int else dims
    if type(axes) not in (tuple, list) or not axes or not form.is_contiguous:
        raise UnfitError
    for axis in axes:
        axis_of(form, axis)
    if len(integers(shifts, len(axes))) != len(axes) or (len(axes) > 1 and type(shifts) is int):
        raise UnfitError
    return Form(form.shape, None, form.dtype)


def clone(input: Any) -> Form:
    """Return the form of a copy."""
    form = given(input)
    if not form.is_contiguous and not is_dense(form):
        raise UnfitError
    return Form(form.shape, _strides_of_copy(form), form.dtype)


into_float16, into_float32, into_float64 = map(_into, (torch.float16, torch.float32, torch.float64))
into_bfloat16, into_bool = _into(torch.bfloat16), _into(torch.bool)
into_int32, into_int64 = _into(torch.int32), _into(torch.int64)
