"""Rules for operators that order elements: sorted or largest values and their indices."""

from __future__ import annotations

from typing import Any

import torch

from .forms import Form, Sizes, UnfitError
from .rule_operands import axis_of, given


def _pair(form: Form, shape: Sizes) -> tuple[Form, Form]:
    return Form(shape, None, form.dtype), Form(shape, None, torch.int64)


def topk(
    input: Any, k: Any, dim: Any = -1, largest: Any = True, sorted: Any = True
) -> tuple[Form, Form]:
    """Return the forms of the largest values along an axis and their indices."""
    form = _ordered(input)
    axis = axis_of(form, dim)
    if type(k) is not int or not 1 <= k <= form.shape[axis]:
        raise UnfitError
    if type(largest) is not bool or type(sorted) is not bool or form.dtype is torch.bool:
        raise UnfitError
    return _pair(form, (*form.shape[:axis], k, *form.shape[axis + 1 :]))


def sort(input: Any, dim: Any = -1, descending: Any = False) -> tuple[Form, Form]:
    """Return the forms of sorted values and their indices."""
    form = _ordered(input)
    axis_of(form, dim)
    if type(descending) is not bool or not form.is_contiguous:
        raise UnfitError
    return _pair(form, form.shape)


def argsort(input: Any, dim: Any = -1, descending: Any = False) -> Form:
    """Return the form of the indices that sort a tensor."""
    return sort(input, dim, descending)[1]


def argmax(input: Any, dim: Any = None, keepdim: Any = False) -> Form:
    """Return the form of `argmax` or `argmin`."""
    form = _ordered(input)
    axis = axis_of(form, dim)
    if form.dtype is torch.bool or type(keepdim) is not bool or not form.is_contiguous:
        raise UnfitError
    reduced_axis = (1,) if keepdim else ()
    return Form((*form.shape[:axis], *reduced_axis, *form.shape[axis + 1 :]), None, torch.int64)


def _ordered(input: Any) -> Form:
    """Return a form of real numbers, which have an order."""
    form = given(input)
    if form.dtype.is_complex:
        raise UnfitError
    return form
