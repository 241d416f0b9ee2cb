"""Rules for indexed additions, which graph networks use to aggregate messages."""

from __future__ import annotations

from typing import Any

import torch

from .forms import Form, UnfitError
from .rule_operands import are_numbers, axis_of, given, plain


def index_add(input: Any, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Form:
    """Return the form of `index_add`."""
    form, places, added = plain(input), given(index), plain(source)
    axis = axis_of(form, dim)
    if places.dtype not in (torch.int32, torch.int64) or len(places.shape) != 1:
        raise UnfitError
    fitting = (*form.shape[:axis], *places.shape, *form.shape[axis + 1 :])
    if added.shape != fitting or added.dtype != form.dtype or not are_numbers(alpha):
        raise UnfitError
    return Form(form.shape, None, form.dtype)


def scatter_add(input: Any, dim: Any, index: Any, src: Any) -> Form:
    """Return the form of `scatter_add`."""
    form = _checked(input, dim, index, src)
    return Form(form.shape, None, form.dtype)


def scatter_add_in_place(input: Any, dim: Any, index: Any, src: Any) -> Form:
    """Return the form of `scatter_add_`."""
    form = _checked(input, dim, index, src)
    # The result may share memory with known elements, or with an operand that is read.
    if form.storage.base is not None or form.storage in (index.storage, src.storage):
        raise UnfitError
    return form


def _checked(input: Any, dim: Any, index: Any, src: Any) -> Form:
    """Return the form of the first operand after checking that the others match it."""
    form, places, added = plain(input), given(index), plain(src)
    axis = axis_of(form, dim)
    if places.dtype is not torch.int64 or added.dtype != form.dtype:
        raise UnfitError
    if not len(form.shape) == len(places.shape) == len(added.shape):
        raise UnfitError
    for position, size in enumerate(places.shape):
        if size > added.shape[position] or (position != axis and size > form.shape[position]):
            raise UnfitError
    return form
