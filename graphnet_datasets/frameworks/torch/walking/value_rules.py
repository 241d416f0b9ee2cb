"""Rules of `rules` for operators that compute: elements, products, norms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .forms import Form, Sizes, UnfitError
from .rule_operands import (
    axis_of,
    given,
    has_channels_last,
    integers,
    is_ambiguous,
    order_of,
    plain,
    strides_in,
)


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
        shape = _broadcast(shape, other.shape)
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
    if form.dtype != other.dtype or form.dtype is torch.bool:
        raise UnfitError
    if is_division and not form.dtype.is_floating_point:
        raise UnfitError
    if form.shape == other.shape and form.strides == other.strides:
        return _like(form)
    if form.shape == () or other.shape == ():
        raise UnfitError
    shape = _broadcast(form.shape, other.shape)
    if form.is_contiguous and other.is_contiguous:
        return Form(shape, None, form.dtype)
    if form.shape != shape:
        form, other = other, form
    order = order_of(form)
    if form.shape != shape or not _follows(other, order):
        raise UnfitError
    return Form(shape, strides_in(shape, order), form.dtype)


def _follows(form: Form, order: list[int]) -> bool:
    """Tell whether the axes of a form lie in memory in the order of those of a larger one."""
    skipped = len(order) - len(form.shape)
    own = [axis - skipped for axis in order if axis >= skipped]
    steps = [form.strides[axis] for axis in own if form.shape[axis] != 1]
    return 0 not in steps and all(one > other for one, other in itertools.pairwise(steps))


def _divide(left: Any, right: Any) -> Form:
    return _binary(left, right, is_division=True)


def _binary_in_place(left: Any, right: Any) -> Form:
    form = given(left)
    result = _binary(left, right)
    if result.shape != form.shape:
        raise UnfitError
    return _in_place(form)


def _broadcast(left: Sizes, right: Sizes) -> Sizes:
    if len(left) < len(right):
        left, right = right, left
    padded = (1,) * (len(left) - len(right)) + right
    sizes = []
    for one, other in zip(left, padded, strict=True):
        if one != other and 1 not in (one, other):
            raise UnfitError
        sizes.append(max(one, other))
    return tuple(sizes)


def _power(base: Any, exponent: Any) -> Form:
    if type(exponent) not in (int, float):
        raise UnfitError
    return _elementwise(base)


def _masked_fill(input: Any, mask: Any, value: Any) -> Form:
    form, cover = plain(input), given(mask)
    if cover.dtype is not torch.bool or type(value) not in (int, float):
        raise UnfitError
    if _broadcast(form.shape, cover.shape) != form.shape:
        raise UnfitError
    return Form(form.shape, None, form.dtype)


# Products


def _linear(input: Any, weight: Any, bias: Any = None) -> Form:
    form, matrix = given(input), plain(weight)
    if (
        len(matrix.shape) != 2
        or not form.shape
        or form.shape[-1] != matrix.shape[1]
        or form.dtype != matrix.dtype
    ):
        raise UnfitError
    _check_bias(bias, matrix)
    return Form((*form.shape[:-1], matrix.shape[0]), None, form.dtype)


def _check_bias(bias: Any, weight: Form, size: int | None = None) -> None:
    if bias is not None:
        each = given(bias)
        wanted = weight.shape[0] if size is None else size
        if each.shape != (wanted,) or each.dtype != weight.dtype:
            raise UnfitError


def _addmm(input: Any, mat1: Any, mat2: Any) -> Form:
    bias, left, right = plain(input), given(mat1), given(mat2)
    if (
        not len(left.shape) == len(right.shape) == 2
        or left.shape[1] != right.shape[0]
        or bias.shape != right.shape[1:]
        or not bias.dtype == left.dtype == right.dtype
    ):
        raise UnfitError
    return Form((left.shape[0], right.shape[1]), None, left.dtype)


def _matmul(left: Any, right: Any) -> Form:
    one, other = given(left), given(right)
    rank = len(one.shape)
    if (
        one.dtype != other.dtype
        or rank < 2
        or len(other.shape) != rank
        or one.shape[:-2] != other.shape[:-2]
        or one.shape[-1] != other.shape[-2]
        or not one.dtype.is_floating_point
        or 0 in (*one.strides, *other.strides)
    ):
        raise UnfitError
    return Form((*one.shape[:-1], other.shape[-1]), None, one.dtype)


def _convolution(rank: int) -> Callable[..., Any]:
    def rule(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Form:
        form, kernel = given(input), plain(weight)
        is_last = has_channels_last(form)
        steps, pads, gaps = (integers(each, rank) for each in (stride, padding, dilation))
        if (
            len(form.shape) != rank + 2
            or len(kernel.shape) != rank + 2
            or form.dtype != kernel.dtype
            or type(groups) is not int
            or groups < 1
            or kernel.shape[0] % groups
            or form.shape[1] != kernel.shape[1] * groups
            or min(steps) < 1
            or min(gaps) < 1
            or min(pads) < 0
            or not (is_last or form.is_contiguous)
            or (not is_last and is_ambiguous(form))
            or is_ambiguous(kernel)
        ):
            raise UnfitError
        _check_bias(bias, kernel)
        sizes = [
            (size + 2 * pad - gap * (window - 1) - 1) // step + 1
            for size, pad, gap, window, step in zip(
                form.shape[2:], pads, gaps, kernel.shape[2:], steps, strict=True
            )
        ]
        if min(sizes) < 1:
            raise UnfitError
        shape = (form.shape[0], kernel.shape[0], *sizes)
        return Form(shape, strides_in(shape, [0, 2, 3, 1]) if is_last else None, form.dtype)

    return rule


# Normalisation and pooling


def _batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: Any = False,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Form:
    form = plain(input)
    if training is not False or len(form.shape) < 2 or not _are_numbers(momentum, eps):
        raise UnfitError
    held = [each for each in (weight, bias) if each is not None]
    for each in map(plain, (running_mean, running_var, *held)):
        if each.shape != (form.shape[1],) or each.dtype != form.dtype:
            raise UnfitError
    return Form(form.shape, None, form.dtype)


def _are_numbers(*values: Any) -> bool:
    return all(type(value) in (int, float) for value in values)


def _layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
) -> Form:
    form = given(input)
    if type(normalized_shape) not in (tuple, list) or not normalized_shape or not _are_numbers(eps):
        raise UnfitError
    shape = tuple(normalized_shape)
    if form.shape[-len(shape) :] != shape or not form.dtype.is_floating_point:
        raise UnfitError
    for each in (weight, bias):
        if each is not None and (plain(each).shape != shape or each.dtype != form.dtype):
            raise UnfitError
    return Form(form.shape, None, form.dtype)


def _mean(input: Any, dim: Any = None, keepdim: Any = False) -> Form:
    form = plain(input)
    dims = (dim,) if type(dim) is int else dim
    if type(dims) not in (tuple, list) or not dims or type(keepdim) is not bool:
        raise UnfitError
    axes = {axis_of(form, each) for each in dims}
    if len(axes) != len(dims):
        raise UnfitError
    shape = [
        1 if axis in axes else size
        for axis, size in enumerate(form.shape)
        if keepdim or axis not in axes
    ]
    return Form(tuple(shape), None, form.dtype)


def _embedding(input: Any, weight: Any, padding_idx: Any = None, *rest: Any) -> Form:
    places, table = given(input), plain(weight)
    if places.dtype not in (torch.int64, torch.int32) or len(table.shape) != 2:
        raise UnfitError
    if type(padding_idx) not in (int, type(None)) or any(
        each not in (None, False) and each != 2.0 for each in rest
    ):
        raise UnfitError
    if not places.is_contiguous:
        raise UnfitError
    return Form((*places.shape, table.shape[1]), None, table.dtype)


VALUE_RULES: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(
        (
            "torch.sigmoid", "torch.Tensor.sigmoid", "torch.tanh", "torch.Tensor.tanh",
            "torch.sqrt", "torch.Tensor.sqrt", "torch.rsqrt", "torch.Tensor.rsqrt", "torch.exp",
            "torch.Tensor.exp", "torch.sin", "torch.Tensor.sin", "torch.cos", "torch.Tensor.cos",
        ),
        _elementwise,
    ),
    **dict.fromkeys(
        (
            "torch.nn.functional.relu", "torch.nn.functional.silu",
            "torch.nn.functional.hardswish", "torch.nn.functional.hardsigmoid",
        ),
        _activation,
    ),
    "torch.nn.functional.gelu": _gelu,
    "torch.nn.functional.dropout": _dropout,
    "torch.nn.functional.softmax": _softmax,
    **dict.fromkeys(("torch.softmax", "torch.Tensor.softmax"), _softmax_of_tensor),
    **dict.fromkeys(
        (
            "operator.add", "operator.mul", "operator.sub", "torch.add", "torch.mul", "torch.sub",
            "torch.Tensor.add", "torch.Tensor.mul", "torch.Tensor.sub",
        ),
        _binary,
    ),
    **dict.fromkeys(("operator.truediv", "torch.div", "torch.Tensor.div"), _divide),
    **dict.fromkeys(
        ("operator.eq", "operator.ne", "operator.lt", "operator.le", "operator.gt", "operator.ge"),
        _compare,
    ),
    **dict.fromkeys(("operator.iadd", "operator.imul"), _binary_in_place),
    **dict.fromkeys(("operator.pow", "torch.pow", "torch.Tensor.pow"), _power),
    "torch.Tensor.masked_fill": _masked_fill,
    "torch.nn.functional.linear": _linear,
    "torch.addmm": _addmm,
    **dict.fromkeys(("torch.matmul", "torch.bmm", "operator.matmul"), _matmul),
    "torch.conv1d": _convolution(1),
    "torch.conv2d": _convolution(2),
    "torch.nn.functional.batch_norm": _batch_norm,
    "torch.nn.functional.layer_norm": _layer_norm,
    "torch.Tensor.mean": _mean,
    "torch.nn.functional.embedding": _embedding,
}  # fmt: skip
"""By the names that the table of operators keeps."""
