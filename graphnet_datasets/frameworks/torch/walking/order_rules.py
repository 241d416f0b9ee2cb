"""Rules of `rules` for operators that put elements into order: the values, and where they were."""

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
    """Return the forms of the largest values along an axis and their positions."""
    form = _ordered(input)
    axis = axis_of(form, dim)
    if type(k) is not int or not 1 <= k <= form.shape[axis]:
        raise UnfitError
    if type(largest) is not bool or type(sorted) is not bool or form.dtype is torch.bool:
        raise UnfitError
    return _pair(form, (*form.shape[:axis], k, *form.shape[axis + 1 :]))


def sort(input: Any, dim: Any = -1, descending: Any = False) -> tuple[Form, Form]:
    """Return the forms of sorted values and their positions."""
    form = _ordered(input)
    axis_of(form, dim)
    if type(descending) is not bool or not form.is_contiguous:
        raise UnfitError
    return _pair(form, form.shape)


def argsort(input: Any, dim: Any = -1, descending: Any = False) -> Form:
    """Return the form of the positions that sort a tensor."""
    return sort(input, dim, descending)[1]


def argmax(input: Any, dim: Any = None, keepdim: Any = False) -> Form:
    """Return the form of the positions of the largest or smallest values."""
    form = _ordered(input)
    axis = axis_of(form, dim)
    if form.dtype is torch.bool or type(keepdim) is not bool or not form.is_contiguous:
        raise UnfitError
    kept = (1,) if keepdim else ()
    return Form((*form.shape[:axis], *kept, *form.shape[axis + 1 :]), None, torch.int64)


def _ordered(input: Any) -> Form:
    """Return the form of numbers of which one is the larger."""
    form = given(input)
    if form.dtype.is_complex:
        raise UnfitError
    return form
