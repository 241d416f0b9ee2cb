"""Rules for unary and binary elementwise operators."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from .forms import Form, UnfitError
from .rule_operands import are_numbers, axis_of, broadcast, given, order_of, plain, strides_in


def _like(form: Form) -> Form:
    """Return the result form of an elementwise operator, which keeps the axis order in memory."""
    if form.is_contiguous:
        return Form(form.shape, None, form.dtype)
    return Form(form.shape, strides_in(form.shape, order_of(form)), form.dtype)


def in_place(form: Form) -> Form:
    """Return the form of an operand that is written in place."""
    if form.storage.base is not None:  # a fake tensor in this storage may have known elements
        raise UnfitError
    return form


def elementwise(input: Any) -> Form:
    """Return the form of a unary operator on floating-point elements."""
    form = given(input)
    if not form.dtype.is_floating_point:
        raise UnfitError
    return _like(form)


def rounded(input: Any) -> Form:
    """Return the form of a unary operator that keeps integer dtypes, such as rounding."""
    form = given(input)
    if form.dtype is torch.bool or form.dtype.is_complex:
        raise UnfitError
    return _like(form)


def activation(input: Any, inplace: Any = False) -> Form:
    """Return the form of an activation function without parameters."""
    if inplace is True:
        return in_place(given(input))
    return elementwise(input)


def bounded(input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: Any = False) -> Form:
    """Return the form of an activation with two bounds, such as `hardtanh`."""
    if not are_numbers(min_val, max_val) or min_val >= max_val:
        raise UnfitError
    if not given(input).dtype.is_floating_point:
        raise UnfitError
    return activation(input, inplace)


def sloped(input: Any, negative_slope: Any = 0.01, inplace: Any = False) -> Form:
    """Return the form of an activation with a slope, such as `leaky_relu`."""
    if not are_numbers(negative_slope):
        raise UnfitError
    if not given(input).dtype.is_floating_point:
        raise UnfitError
    return activation(input, inplace)


def softplus(input: Any, beta: Any = 1, threshold: Any = 20) -> Form:
    """Return the form of `softplus`."""
    if not are_numbers(beta, threshold):
        raise UnfitError
    return elementwise(input)


def clamp(input: Any, min: Any = None, max: Any = None) -> Form:
    """Return the form of `clamp` with numbers as bounds."""
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds or not are_numbers(*bounds):
        raise UnfitError
    return elementwise(input) if float in map(type, bounds) else rounded(input)


def negate(input: Any) -> Form:
    """Return the form of a negated tensor; booleans are rejected, as in torch."""
    form = given(input)
    if form.dtype is torch.bool:
        raise UnfitError
    return _like(form)


def invert(input: Any) -> Form:
    """Return the form of a bitwise complement."""
    form = given(input)
    if form.dtype is not torch.bool and (form.dtype.is_floating_point or form.dtype.is_complex):
        raise UnfitError
    return _like(form)


def prelu(input: Any, weight: Any) -> Form:
    """Return the form of `prelu`, which has one slope or one per channel."""
    form, slope = plain(input), plain(weight)
    if len(slope.shape) != 1 or slope.dtype != form.dtype or len(form.shape) < 2:
        raise UnfitError
    if slope.shape[0] not in (1, form.shape[1]):
        raise UnfitError
    return Form(form.shape, None, form.dtype)


def gelu(input: Any, approximate: Any = "none") -> Form:
    """Return the form of `gelu`."""
    if approximate not in ("none", "tanh"):
        raise UnfitError
    return elementwise(input)


def dropout(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Form:
    """Return the form of `dropout` outside training."""
    del inplace
    if training is not False or type(p) not in (int, float) or not 0 <= p <= 1:
        raise UnfitError
    form = given(input)
    return form.with_view(form.shape, form.strides)


def dropout_of_channels(input: Any, *rest: Any, **options: Any) -> Form:
    """Return the form of a dropout that zeroes whole channels."""
    if len(given(input).shape) != 4:  # torch warns about other ranks
        raise UnfitError
    return dropout(input, *rest, **options)


def softmax(input: Any, dim: Any, _stacklevel: Any = 3, dtype: Any = None) -> Form:
    """Return the form of the function `softmax` or `log_softmax`."""
    form = given(input)
    axis_of(form, dim)
    if not form.dtype.is_floating_point or type(_stacklevel) is not int:
        raise UnfitError
    if type(dtype) not in (torch.dtype, type(None)) or (dtype and not dtype.is_floating_point):
        raise UnfitError
    return Form(form.shape, None, dtype or form.dtype)


def softmax_of_tensor(input: Any, dim: Any, dtype: Any = None) -> Form:
    """Return the form of the method `softmax` or `log_softmax`."""
    return softmax(input, dim, dtype=dtype)


def compare(left: Any, right: Any) -> Form:
    """Return the form of a comparison, which is boolean."""
    if type(left) is not Form:
        left, right = right, left
    form = given(left)
    shape = form.shape
    if type(right) not in (int, float):
        right_form = given(right)
        if right_form.dtype != form.dtype or not right_form.is_contiguous:
            raise UnfitError
        shape = broadcast(shape, right_form.shape)
    if not form.is_contiguous or form.dtype.is_complex or () in (form.shape, shape):
        raise UnfitError
    return Form(shape, None, torch.bool)


def binary(left: Any, right: Any, *, is_division: bool = False) -> Form:
    """Return the form of a binary operator with broadcasting."""
    if type(left) is not Form:
        left, right = right, left
    form = given(left)
    if type(right) in (int, float):
        if form.dtype.is_floating_point:
            return _like(form)
        if form.dtype is torch.bool or form.dtype.is_complex:
            raise UnfitError
        is_float = is_division or type(right) is float
        return _of_dtype(_like(form), torch.get_default_dtype()) if is_float else _like(form)
    right_form = given(right)
    floats = form.dtype.is_floating_point, right_form.dtype.is_floating_point
    has_bools = torch.bool in (form.dtype, right_form.dtype)
    if (is_division and not all(floats)) or (has_bools and not any(floats)):
        raise UnfitError
    return _paired(form, right_form)


def subtract(left: Any, right: Any) -> Form:
    """Return the form of a difference; booleans are rejected, as in torch."""
    for operand in (left, right):
        if type(operand) is Form and operand.dtype is torch.bool:
            raise UnfitError
    return binary(left, right)


def subtract_in_place(left: Any, right: Any) -> Form:
    """Return the form of an in-place difference."""
    subtract(left, right)
    return binary_in_place(left, right)


def extreme(left: Any, right: Any) -> Form:
    """Return the form of `maximum`, `minimum` and similar operators."""
    left_form, right_form = given(left), given(right)
    if left_form.dtype != right_form.dtype or left_form.dtype.is_complex:
        raise UnfitError
    return _paired(left_form, right_form)


def _paired(form: Form, other: Form) -> Form:
    """Return the result form of a binary operator, with the memory order that torch chooses."""
    dtype = _common_dtype(form, other)
    if form.shape == other.shape and form.strides == other.strides:
        return _of_dtype(_like(form), dtype)
    if () in (form.shape, other.shape):
        return _of_dtype(_like(other if form.shape == () else form), dtype)
    shape = broadcast(form.shape, other.shape)
    if form.is_contiguous and other.is_contiguous:
        return Form(shape, None, dtype)
    if form.shape == shape and _is_ordered(form):
        # The first operand determines the memory order if its strides are unambiguous.
        return Form(shape, strides_in(shape, order_of(form)), dtype)
    if form.shape != shape:
        form, other = other, form
    order = order_of(form)
    if form.shape != shape or not _follows(other, order):
        raise UnfitError
    return Form(shape, strides_in(shape, order), dtype)


def _is_ordered(form: Form) -> bool:
    """Return whether the strides of all axes larger than 1 are distinct and non-zero."""
    steps = [step for step, size in zip(form.strides, form.shape, strict=True) if size != 1]
    return 0 not in steps and len(set(steps)) == len(steps)


def _common_dtype(form: Form, other: Form) -> torch.dtype:
    if form.dtype == other.dtype:
        return form.dtype
    if form.dtype.is_complex or other.dtype.is_complex:
        raise UnfitError
    if form.shape == () or other.shape == ():
        if form.shape == other.shape:
            raise UnfitError
        single, whole = (form, other) if form.shape == () else (other, form)
        # A zero-dimensional operand affects the dtype only if its category is higher.
        if _kind(single.dtype) <= _kind(whole.dtype):
            return whole.dtype
    return torch.promote_types(form.dtype, other.dtype)


def _kind(dtype: torch.dtype) -> int:
    return 2 if dtype.is_floating_point else int(dtype is not torch.bool)


def _of_dtype(form: Form, dtype: torch.dtype) -> Form:
    return form if form.dtype == dtype else Form(form.shape, form.strides, dtype)


def bitwise(left: Any, right: Any) -> Form:
    """Return the form of a bitwise operator on integers or booleans of the same dtype."""
    left_form, right_form = given(left), given(right)
    if (
        left_form.dtype != right_form.dtype
        or left_form.dtype.is_floating_point
        or left_form.dtype.is_complex
    ):
        raise UnfitError
    return _paired(left_form, right_form)


def _follows(form: Form, order: list[int]) -> bool:
    """Return whether the axes of a form have the memory order of a larger form."""
    skipped = len(order) - len(form.shape)
    own = [axis - skipped for axis in order if axis >= skipped]
    steps = [form.strides[axis] for axis in own if form.shape[axis] != 1]
    return 0 not in steps and all(outer > inner for outer, inner in itertools.pairwise(steps))


def divide(left: Any, right: Any) -> Form:
    """Return the form of a quotient, which is floating-point."""
    return binary(left, right, is_division=True)


def binary_in_place(left: Any, right: Any, *, is_division: bool = False) -> Form:
    """Return the form of a binary operator that writes into its first operand."""
    form = given(left)
    result = binary(left, right, is_division=is_division)
    if result.shape != form.shape or (
        result.dtype != form.dtype and not form.dtype.is_floating_point
    ):
        raise UnfitError
    return in_place(form)


def divide_in_place(left: Any, right: Any) -> Form:
    """Return the form of an in-place quotient."""
    return binary_in_place(left, right, is_division=True)


def power(base: Any, exponent: Any) -> Form:
    """Return the form of a power whose exponent is a number."""
    if type(exponent) not in (int, float):
        raise UnfitError
    return elementwise(base)


def power_in_place(base: Any, exponent: Any) -> Form:
    """Return the form of an in-place power."""
    power(base, exponent)
    return in_place(base)
