"""Rules of `rules` for operators on single elements, and on pairs of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .forms import Form, UnfitError
from .rule_operands import are_numbers, axis_of, broadcast, given, order_of, plain, strides_in


def _like(form: Form) -> Form:
    """Return a new tensor as an operator on single elements makes it: in the same order."""
    if form.is_contiguous:
        return Form(form.shape, None, form.dtype)
    return Form(form.shape, strides_in(form.shape, order_of(form)), form.dtype)


def _in_place(form: Form) -> Form:
    if form.storage.base is not None:  # fake tensors that others may have elements of
        raise UnfitError
    return form


def _elementwise(input: Any) -> Form:
    form = given(input)
    if not form.dtype.is_floating_point:
        raise UnfitError
    return _like(form)


def _activation(input: Any, inplace: Any = False) -> Form:
    if inplace is True:
        return _in_place(given(input))
    return _elementwise(input)


def _bounded(input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: Any = False) -> Form:
    if not are_numbers(min_val, max_val) or min_val >= max_val:
        raise UnfitError
    if not given(input).dtype.is_floating_point:
        raise UnfitError
    return _activation(input, inplace)


def _sloped(input: Any, negative_slope: Any = 0.01, inplace: Any = False) -> Form:
    if not are_numbers(negative_slope):
        raise UnfitError
    if not given(input).dtype.is_floating_point:
        raise UnfitError
    return _activation(input, inplace)


def _softplus(input: Any, beta: Any = 1, threshold: Any = 20) -> Form:
    if not are_numbers(beta, threshold):
        raise UnfitError
    return _elementwise(input)


def _clamp(input: Any, min: Any = None, max: Any = None) -> Form:
    held = [each for each in (min, max) if each is not None]
    if not held or not are_numbers(*held):
        raise UnfitError
    return _elementwise(input)


def _negate(input: Any) -> Form:
    form = given(input)
    if form.dtype is torch.bool:
        raise UnfitError
    return _like(form)


def _invert(input: Any) -> Form:
    form = given(input)
    if form.dtype is not torch.bool and (form.dtype.is_floating_point or form.dtype.is_complex):
        raise UnfitError
    return _like(form)


def _prelu(input: Any, weight: Any) -> Form:
    form, slope = plain(input), plain(weight)
    if len(slope.shape) != 1 or slope.dtype != form.dtype or len(form.shape) < 2:
        raise UnfitError
    if slope.shape[0] not in (1, form.shape[1]):
        raise UnfitError
    return Form(form.shape, None, form.dtype)


def _gelu(input: Any, approximate: Any = "none") -> Form:
    if approximate not in ("none", "tanh"):
        raise UnfitError
    return _elementwise(input)


def _dropout(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Form:
    del inplace
    if training is not False or type(p) not in (int, float) or not 0 <= p <= 1:
        raise UnfitError
    form = given(input)
    return form.with_view(form.shape, form.strides)


def _softmax(input: Any, dim: Any, _stacklevel: Any = 3, dtype: Any = None) -> Form:
    form = plain(input)
    axis_of(form, dim)
    if dtype not in (None, form.dtype) or type(_stacklevel) is not int:
        raise UnfitError
    return _like(form)


def _softmax_of_tensor(input: Any, dim: Any, dtype: Any = None) -> Form:
    return _softmax(input, dim, dtype=dtype)


def _compare(left: Any, right: Any) -> Form:
    if type(left) is not Form:
        left, right = right, left
    form = given(left)
    shape = form.shape
    if type(right) not in (int, float):
        other = given(right)
        if other.dtype != form.dtype or not other.is_contiguous:
            raise UnfitError
        shape = broadcast(shape, other.shape)
    if not form.is_contiguous or form.dtype.is_complex or () in (form.shape, shape):
        raise UnfitError
    return Form(shape, None, torch.bool)


def _binary(left: Any, right: Any, *, is_division: bool = False) -> Form:
    if type(left) is not Form:
        left, right = right, left
    form = given(left)
    if type(right) in (int, float):
        if not form.dtype.is_floating_point and (
            is_division or type(right) is float or form.dtype is torch.bool
        ):
            raise UnfitError
        return _like(form)
    other = given(right)
    if torch.bool in (form.dtype, other.dtype):
        raise UnfitError
    if is_division and not form.dtype.is_floating_point:
        raise UnfitError
    return _paired(form, other)


def _paired(form: Form, other: Form) -> Form:
    """Return what an operator on pairs of elements makes, in the order in which memory lies."""
    dtype = _common_dtype(form, other)
    if form.shape == other.shape and form.strides == other.strides:
        return _of_dtype(_like(form), dtype)
    if () in (form.shape, other.shape):
        return _of_dtype(_like(other if form.shape == () else form), dtype)
    shape = broadcast(form.shape, other.shape)
    if form.is_contiguous and other.is_contiguous:
        return Form(shape, None, dtype)
    if form.shape == shape and _is_ordered(form):
        # The first operand decides wherever its own steps do.
        return Form(shape, strides_in(shape, order_of(form)), dtype)
    if form.shape != shape:
        form, other = other, form
    order = order_of(form)
    if form.shape != shape or not _follows(other, order):
        raise UnfitError
    return Form(shape, strides_in(shape, order), dtype)


def _is_ordered(form: Form) -> bool:
    """Tell whether every two axes of more than one element have other steps, and none stays."""
    steps = [step for step, size in zip(form.strides, form.shape, strict=True) if size != 1]
    return 0 not in steps and len(set(steps)) == len(steps)


def _common_dtype(form: Form, other: Form) -> torch.dtype:
    if form.dtype == other.dtype:
        return form.dtype
    if not (form.dtype.is_floating_point and other.dtype.is_floating_point):
        raise UnfitError
    if form.shape == () or other.shape == ():
        if form.shape == other.shape:
            raise UnfitError
        return other.dtype if form.shape == () else form.dtype
    return torch.promote_types(form.dtype, other.dtype)


def _of_dtype(form: Form, dtype: torch.dtype) -> Form:
    return form if form.dtype == dtype else Form(form.shape, form.strides, dtype)


def _bitwise(left: Any, right: Any) -> Form:
    one, other = given(left), given(right)
    if one.dtype != other.dtype or one.dtype.is_floating_point or one.dtype.is_complex:
        raise UnfitError
    return _paired(one, other)


def _follows(form: Form, order: list[int]) -> bool:
    """Tell whether the axes of a form lie in memory in the order of those of a larger one."""
    skipped = len(order) - len(form.shape)
    own = [axis - skipped for axis in order if axis >= skipped]
    steps = [form.strides[axis] for axis in own if form.shape[axis] != 1]
    return 0 not in steps and all(one > other for one, other in itertools.pairwise(steps))


def _divide(left: Any, right: Any) -> Form:
    return _binary(left, right, is_division=True)


def _binary_in_place(left: Any, right: Any, *, is_division: bool = False) -> Form:
    form = given(left)
    result = _binary(left, right, is_division=is_division)
    if result.shape != form.shape or (
        result.dtype != form.dtype and not form.dtype.is_floating_point
    ):
        raise UnfitError
    return _in_place(form)


def _divide_in_place(left: Any, right: Any) -> Form:
    return _binary_in_place(left, right, is_division=True)


def _power(base: Any, exponent: Any) -> Form:
    if type(exponent) not in (int, float):
        raise UnfitError
    return _elementwise(base)


def _power_in_place(base: Any, exponent: Any) -> Form:
    _power(base, exponent)
    return _in_place(base)


def _masked_fill(input: Any, mask: Any, value: Any) -> Form:
    form = _checked_fill(plain(input), mask, value)
    return Form(form.shape, None, form.dtype)


def _masked_fill_in_place(input: Any, mask: Any, value: Any) -> Form:
    form = _checked_fill(given(input), mask, value)
    _elementwise(form)  # no element of it lies in two places
    if mask.storage is form.storage:  # memory that is read as well as written
        raise UnfitError
    return _in_place(form)


def _checked_fill(form: Form, mask: Any, value: Any) -> Form:
    """Return the form that is filled, of operands that fit."""
    cover = given(mask)
    if cover.dtype is not torch.bool or type(value) not in (int, float):
        raise UnfitError
    if broadcast(form.shape, cover.shape) != form.shape:
        raise UnfitError
    return form


def _where(condition: Any, input: Any, other: Any) -> Form:
    cover = given(condition)
    numbers = [each for each in (input, other) if type(each) in (int, float)]
    forms = [given(each) for each in (input, other) if type(each) not in (int, float)]
    if cover.dtype is not torch.bool or not forms:
        raise UnfitError
    dtype, shape = forms[0].dtype, cover.shape
    for each in forms:
        shape = broadcast(shape, each.shape)
        if each.dtype != dtype or not each.is_contiguous:
            raise UnfitError
    if not cover.is_contiguous or (numbers and not dtype.is_floating_point):
        raise UnfitError
    return Form(shape, None, dtype)


ELEMENT_RULES: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(
        (
            "torch.sigmoid", "torch.Tensor.sigmoid", "torch.tanh", "torch.Tensor.tanh",
            "torch.sqrt", "torch.Tensor.sqrt", "torch.rsqrt", "torch.Tensor.rsqrt", "torch.exp",
            "torch.Tensor.exp", "torch.sin", "torch.Tensor.sin", "torch.cos", "torch.Tensor.cos",
            "torch.log", "torch.Tensor.log", "torch.abs", "torch.Tensor.abs", "torch.erf",
            "torch.Tensor.floor", "torch.square", "torch.Tensor.square",
        ),
        _elementwise,
    ),
    **dict.fromkeys(
        (
            "torch.nn.functional.relu", "torch.nn.functional.silu", "torch.nn.functional.relu6",
            "torch.nn.functional.hardswish", "torch.nn.functional.hardsigmoid",
            "torch.nn.functional.mish",
        ),
        _activation,
    ),
    **dict.fromkeys(("torch.relu", "torch.Tensor.relu"), _elementwise),
    "torch.nn.functional.hardtanh": _bounded,
    "torch.nn.functional.leaky_relu": _sloped,
    "torch.nn.functional.softplus": _softplus,
    "torch.prelu": _prelu,
    **dict.fromkeys(("torch.clamp", "torch.Tensor.clamp"), _clamp),
    **dict.fromkeys(("operator.neg", "torch.neg", "torch.Tensor.neg"), _negate),
    "operator.invert": _invert,
    "torch.nn.functional.gelu": _gelu,
    "torch.nn.functional.dropout": _dropout,
    **dict.fromkeys(("torch.nn.functional.softmax", "torch.nn.functional.log_softmax"), _softmax),
    **dict.fromkeys(
        ("torch.softmax", "torch.Tensor.softmax", "torch.log_softmax", "torch.Tensor.log_softmax"),
        _softmax_of_tensor,
    ),
    **dict.fromkeys(
        (
            "operator.add", "operator.mul", "operator.sub", "torch.add", "torch.mul", "torch.sub",
            "torch.Tensor.add", "torch.Tensor.mul", "torch.Tensor.sub",
        ),
        _binary,
    ),
    **dict.fromkeys(("operator.truediv", "torch.div", "torch.Tensor.div"), _divide),
    **dict.fromkeys(("operator.and_", "operator.or_", "operator.xor"), _bitwise),
    **dict.fromkeys(
        (
            "operator.eq", "operator.ne", "operator.lt", "operator.le", "operator.gt",
            "operator.ge", "torch.Tensor.eq", "torch.Tensor.ne",
        ),
        _compare,
    ),
    **dict.fromkeys(
        (
            "operator.iadd", "operator.imul", "operator.isub", "torch.Tensor.add_",
            "torch.Tensor.mul_", "torch.Tensor.sub_",
        ),
        _binary_in_place,
    ),
    **dict.fromkeys(("operator.itruediv", "torch.Tensor.div_"), _divide_in_place),
    **dict.fromkeys(("operator.pow", "torch.pow", "torch.Tensor.pow"), _power),
    **dict.fromkeys(("operator.ipow", "torch.Tensor.pow_"), _power_in_place),
    "torch.Tensor.masked_fill": _masked_fill,
    "torch.Tensor.masked_fill_": _masked_fill_in_place,
    "torch.where": _where,
}  # fmt: skip
"""By the names that the table of operators keeps."""
