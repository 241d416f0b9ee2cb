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


def in_place(form: Form) -> Form:
    """Return a form that is written to."""
    if form.storage.base is not None:  # fake tensors that others may have elements of
        raise UnfitError
    return form


def elementwise(input: Any) -> Form:
    """Return what an operator on single floating-point numbers makes."""
    form = given(input)
    if not form.dtype.is_floating_point:
        raise UnfitError
    return _like(form)


def _rounded(input: Any) -> Form:
    """What keeps integers as they are."""
    form = given(input)
    if form.dtype is torch.bool or form.dtype.is_complex:
        raise UnfitError
    return _like(form)


def _activation(input: Any, inplace: Any = False) -> Form:
    if inplace is True:
        return in_place(given(input))
    return elementwise(input)


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
    return elementwise(input)


def _clamp(input: Any, min: Any = None, max: Any = None) -> Form:
    held = [each for each in (min, max) if each is not None]
    if not held or not are_numbers(*held):
        raise UnfitError
    return elementwise(input) if float in map(type, held) else _rounded(input)


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
    return elementwise(input)


def _dropout(input: Any, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Form:
    del inplace
    if training is not False or type(p) not in (int, float) or not 0 <= p <= 1:
        raise UnfitError
    form = given(input)
    return form.with_view(form.shape, form.strides)


def _dropout_of_channels(input: Any, *rest: Any, **options: Any) -> Form:
    if len(given(input).shape) != 4:  # of which torch warns
        raise UnfitError
    return _dropout(input, *rest, **options)


def _softmax(input: Any, dim: Any, _stacklevel: Any = 3, dtype: Any = None) -> Form:
    form = given(input)
    axis_of(form, dim)
    if not form.dtype.is_floating_point or type(_stacklevel) is not int:
        raise UnfitError
    if type(dtype) not in (torch.dtype, type(None)) or (dtype and not dtype.is_floating_point):
        raise UnfitError
    return Form(form.shape, None, dtype or form.dtype)


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
        if form.dtype.is_floating_point:
            return _like(form)
        if form.dtype is torch.bool or form.dtype.is_complex:
            raise UnfitError
        is_float = is_division or type(right) is float
        return _of_dtype(_like(form), torch.get_default_dtype()) if is_float else _like(form)
    other = given(right)
    floats = form.dtype.is_floating_point, other.dtype.is_floating_point
    has_bools = torch.bool in (form.dtype, other.dtype)
    if (is_division and not all(floats)) or (has_bools and not any(floats)):
        raise UnfitError
    return _paired(form, other)


def _subtract(left: Any, right: Any) -> Form:
    for each in (left, right):
        if type(each) is Form and each.dtype is torch.bool:  # which torch refuses
            raise UnfitError
    return _binary(left, right)


def _subtract_in_place(left: Any, right: Any) -> Form:
    _subtract(left, right)
    return _binary_in_place(left, right)


def _extreme(left: Any, right: Any) -> Form:
    one, other = given(left), given(right)
    if one.dtype != other.dtype or one.dtype.is_complex:
        raise UnfitError
    return _paired(one, other)


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
    if form.dtype.is_complex or other.dtype.is_complex:
        raise UnfitError
    if form.shape == () or other.shape == ():
        if form.shape == other.shape:
            raise UnfitError
        single, whole = (form, other) if form.shape == () else (other, form)
        # One element decides only where it is of another kind: a float beside integers.
        if _kind(single.dtype) <= _kind(whole.dtype):
            return whole.dtype
    return torch.promote_types(form.dtype, other.dtype)


def _kind(dtype: torch.dtype) -> int:
    return 2 if dtype.is_floating_point else int(dtype is not torch.bool)


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
    return in_place(form)


def _divide_in_place(left: Any, right: Any) -> Form:
    return _binary_in_place(left, right, is_division=True)


def _power(base: Any, exponent: Any) -> Form:
    if type(exponent) not in (int, float):
        raise UnfitError
    return elementwise(base)


def _power_in_place(base: Any, exponent: Any) -> Form:
    _power(base, exponent)
    return in_place(base)


ELEMENT_RULES: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(
        (
            "torch.sigmoid", "torch.Tensor.sigmoid", "torch.tanh", "torch.Tensor.tanh",
            "torch.sqrt", "torch.Tensor.sqrt", "torch.rsqrt", "torch.Tensor.rsqrt", "torch.exp",
            "torch.Tensor.exp", "torch.sin", "torch.Tensor.sin", "torch.cos", "torch.Tensor.cos",
            "torch.log", "torch.Tensor.log", "torch.erf", "torch.square", "torch.Tensor.square",
        ),
        elementwise,
    ),
    **dict.fromkeys(
        (
            "torch.abs", "torch.Tensor.abs", "torch.sign", "torch.Tensor.sign", "torch.ceil",
            "torch.Tensor.ceil", "torch.Tensor.floor",
        ),
        _rounded,
    ),
    **dict.fromkeys(
        (
            "torch.nn.functional.relu", "torch.nn.functional.silu", "torch.nn.functional.relu6",
            "torch.nn.functional.hardswish", "torch.nn.functional.hardsigmoid",
            "torch.nn.functional.mish",
        ),
        _activation,
    ),
    **dict.fromkeys(("torch.relu", "torch.Tensor.relu"), elementwise),
    "torch.nn.functional.hardtanh": _bounded,
    "torch.nn.functional.leaky_relu": _sloped,
    "torch.nn.functional.softplus": _softplus,
    "torch.prelu": _prelu,
    **dict.fromkeys(("torch.clamp", "torch.Tensor.clamp"), _clamp),
    **dict.fromkeys(("operator.neg", "torch.neg", "torch.Tensor.neg"), _negate),
    "operator.invert": _invert,
    "torch.nn.functional.gelu": _gelu,
    "torch.nn.functional.dropout": _dropout,
    "torch.nn.functional.dropout2d": _dropout_of_channels,
    **dict.fromkeys(("torch.nn.functional.softmax", "torch.nn.functional.log_softmax"), _softmax),
    **dict.fromkeys(
        ("torch.softmax", "torch.Tensor.softmax", "torch.log_softmax", "torch.Tensor.log_softmax"),
        _softmax_of_tensor,
    ),
    **dict.fromkeys(
        (
            "operator.add", "operator.mul", "torch.add", "torch.mul", "torch.Tensor.add",
            "torch.Tensor.mul",
        ),
        _binary,
    ),
    **dict.fromkeys(("operator.sub", "torch.sub", "torch.Tensor.sub"), _subtract),
    **dict.fromkeys(("torch.max", "torch.maximum", "torch.min", "torch.minimum"), _extreme),
    **dict.fromkeys(("operator.truediv", "torch.div", "torch.Tensor.div"), _divide),
    **dict.fromkeys(("operator.and_", "operator.or_", "operator.xor"), _bitwise),
    **dict.fromkeys(
        (
            "operator.eq", "operator.ne", "operator.lt", "operator.le", "operator.gt",
            "operator.ge", "torch.Tensor.eq", "torch.Tensor.ne", "torch.Tensor.__eq__",
        ),
        _compare,
    ),
    **dict.fromkeys(
        (
            "operator.iadd", "operator.imul", "torch.Tensor.add_", "torch.Tensor.mul_",
        ),
        _binary_in_place,
    ),
    **dict.fromkeys(("operator.isub", "torch.Tensor.sub_"), _subtract_in_place),
    **dict.fromkeys(("operator.itruediv", "torch.Tensor.div_"), _divide_in_place),
    **dict.fromkeys(("operator.pow", "torch.pow", "torch.Tensor.pow"), _power),
    **dict.fromkeys(("operator.ipow", "torch.Tensor.pow_"), _power_in_place),
}  # fmt: skip
"""By the names that the table of operators keeps."""
