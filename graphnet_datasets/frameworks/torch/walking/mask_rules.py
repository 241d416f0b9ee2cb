"""Rules for operators that use masks."""

from __future__ import annotations

from typing import Any

import torch

from .element_rules import elementwise, in_place
from .forms import Form, UnfitError
from .rule_operands import broadcast, given, plain


def masked_fill(input: Any, mask: Any, value: Any) -> Form:
    """Return the form of `masked_fill`."""
    form = _checked_fill(plain(input), mask, value)
    return Form(form.shape, None, form.dtype)


def masked_fill_in_place(input: Any, mask: Any, value: Any) -> Form:
    """Return the form of `masked_fill_`."""
    form = _checked_fill(given(input), mask, value)
    elementwise(form)  # rejects forms with overlapping elements
    if mask.storage is form.storage:  # the mask is read while its memory is written
        raise UnfitError
    return in_place(form)


def _checked_fill(form: Form, mask: Any, value: Any) -> Form:
    """Return the form to be filled after checking the mask and value."""
    cover = given(mask)
    if cover.dtype is not torch.bool or not _fills(form, value):
        raise UnfitError
    if broadcast(form.shape, cover.shape) != form.shape:
        raise UnfitError
    return form


def _fills(form: Form, value: Any) -> bool:
    """Return whether a value can fill a tensor: a number or a zero-dimensional tensor."""
    if type(value) is not Form:
        return type(value) in (int, float)
    floats = form.dtype.is_floating_point and value.dtype.is_floating_point
    return value.shape == () and (floats or value.dtype == form.dtype)


def triangle(input: Any, diagonal: Any = 0) -> Form:
    """Return the form of `tril` and `triu`."""
    form = given(input)
    if len(form.shape) < 2 or type(diagonal) is not int or not form.is_contiguous:
        raise UnfitError
    return Form(form.shape, None, form.dtype)


def where(condition: Any, input: Any, other: Any) -> Form:
    """Return the form of `where` with three operands."""
    cover = given(condition)
    numbers = [operand for operand in (input, other) if type(operand) in (int, float)]
    forms = [given(operand) for operand in (input, other) if type(operand) not in (int, float)]
    if cover.dtype is not torch.bool or not forms:
        raise UnfitError
    dtype, shape = forms[0].dtype, cover.shape
    for form in forms:
        shape = broadcast(shape, form.shape)
        if form.dtype != dtype or not form.is_contiguous:
            raise UnfitError
    if not cover.is_contiguous or (numbers and not dtype.is_floating_point):
        raise UnfitError
    return Form(shape, None, dtype)
