"""Rules for operators that copy or join tensors, or change their dtype or memory order."""

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
    """Return the form of `contiguous`: a view, or a contiguous copy."""
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
        elif place is not False:  # `copy=True` passed by position
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
    """Return the strides of a copy, or None if the copy is contiguous.

    A dense tensor keeps its memory order. A tensor with gaps or overlaps becomes contiguous, unless
    its strides count as channels-last.
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
    """Return the form of a tensor converted to the dtype of another tensor."""
    return to(input, given(other).dtype)


def cat(tensors: Any, dim: Any = 0) -> Form:
    """Return the form of tensors joined along an axis."""
    if type(tensors) not in (tuple, list) or not tensors:
        raise UnfitError
    # `cat` ignores tensors of shape (0,), with which key-value caches begin.
    forms = [given(tensor) for tensor in tensors if not _is_nothing(tensor)]
    if not forms:
        raise UnfitError
    if len(forms) < len(tensors):
        empty_dtypes = [tensor.dtype for tensor in tensors if _is_nothing(tensor)]
        if any(dtype != forms[0].dtype for dtype in empty_dtypes):
            raise UnfitError
    first = forms[0]
    axis = axis_of(first, dim)
    for form in forms:
        if (
            form.dtype != first.dtype
            or not (form.is_contiguous or has_rows(form))
            or len(form.shape) != len(first.shape)
            or form.shape[:axis] != first.shape[:axis]
            or form.shape[axis + 1 :] != first.shape[axis + 1 :]
            or (form.is_contiguous and len(form.shape) in (4, 5) and is_ambiguous(form))
        ):
            raise UnfitError
    size = sum(form.shape[axis] for form in forms)
    return Form((*first.shape[:axis], size, *first.shape[axis + 1 :]), None, first.dtype)


def _is_nothing(value: Any) -> bool:
    return type(value) is Form and value.shape == (0,)


def stack(tensors: Any, dim: Any = 0) -> Form:
    """Return the form of tensors joined along a new axis."""
    if type(tensors) not in (tuple, list) or not tensors:
        raise UnfitError
    forms = [given(tensor) for tensor in tensors]
    first, rank = forms[0], len(forms[0].shape)
    if type(dim) is not int or not -rank - 1 <= dim <= rank:
        raise UnfitError
    if any(form.shape != first.shape or form.dtype != first.dtype for form in forms):
        raise UnfitError
    is_plain = all(form.is_contiguous for form in forms) and 1 not in first.shape
    if rank in (3, 4) and not is_plain:  # the result may count as channels-last
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
    """Return the form of a tensor with circularly shifted elements."""
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
