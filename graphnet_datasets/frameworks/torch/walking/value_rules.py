"""Rules for products, convolutions, normalizations, reductions and indexed reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .forms import Form, UnfitError
from .rule_operands import (
    are_numbers,
    axis_of,
    given,
    has_channels_last,
    integers,
    is_ambiguous,
    order_of,
    plain,
    strides_in,
)

# Products


def linear(input: Any, weight: Any, bias: Any = None) -> Form:
    """Return the form of a linear layer."""
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
        bias_form = given(bias)
        channels = weight.shape[0] if size is None else size
        if bias_form.shape != (channels,) or bias_form.dtype != weight.dtype:
            raise UnfitError


def addmm(input: Any, mat1: Any, mat2: Any) -> Form:
    """Return the form of a matrix product with an addend."""
    bias, left, right = plain(input), given(mat1), given(mat2)
    if (
        not len(left.shape) == len(right.shape) == 2
        or left.shape[1] != right.shape[0]
        or bias.shape != right.shape[1:]
        or not bias.dtype == left.dtype == right.dtype
    ):
        raise UnfitError
    return Form((left.shape[0], right.shape[1]), None, left.dtype)


def matmul(left: Any, right: Any) -> Form:
    """Return the form of a matrix product with broadcast batches."""
    left_form, right_form = given(left), given(right)
    rank = len(left_form.shape)
    if (
        left_form.dtype != right_form.dtype
        or rank < 2
        or len(right_form.shape) != rank
        or left_form.shape[:-2] != right_form.shape[:-2]
        or left_form.shape[-1] != right_form.shape[-2]
        or not left_form.dtype.is_floating_point
        or 0 in (*left_form.strides, *right_form.strides)
    ):
        raise UnfitError
    return Form((*left_form.shape[:-1], right_form.shape[-1]), None, left_form.dtype)


def _check_kernel(
    form: Form,
    kernel: Form,
    rank: int,
    groups: Any,
    steps: Sequence[int],
    pads: Sequence[int],
    gaps: Sequence[int],
) -> None:
    """Raise `UnfitError` unless a convolution with this kernel over `rank` axes is valid."""
    if (
        len(form.shape) != rank + 2
        or len(kernel.shape) != rank + 2
        or form.dtype != kernel.dtype
        or type(groups) is not int
        or groups < 1
        or min(steps) < 1
        or min(gaps) < 1
        or min(pads) < 0
        or is_ambiguous(kernel)
    ):
        raise UnfitError


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
        is_same = padding == "same"
        if is_same or padding == "valid":
            padding = 0
        steps, pads, gaps = (integers(option, rank) for option in (stride, padding, dilation))
        _check_kernel(form, kernel, rank, groups, steps, pads, gaps)
        if (
            kernel.shape[0] % groups
            or form.shape[1] != kernel.shape[1] * groups
            or not (is_last or form.is_contiguous)
            or (not is_last and is_ambiguous(form))
        ):
            raise UnfitError
        _check_bias(bias, kernel)
        if is_same:
            if set(steps) != {1} or not all(width % 2 for width in kernel.shape[2:]):
                raise UnfitError
            pads = tuple(
                gap * (width - 1) // 2 for gap, width in zip(gaps, kernel.shape[2:], strict=True)
            )
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


def transposed_convolution(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> Form:
    """Return the form of a transposed convolution."""
    form, kernel = plain(input), plain(weight)
    steps, pads, more, gaps = (
        integers(option, 2) for option in (stride, padding, output_padding, dilation)
    )
    _check_kernel(form, kernel, 2, groups, steps, (*pads, *more), gaps)
    if (
        form.shape[1] != kernel.shape[0]
        or form.shape[1] % groups
        or any(extra >= max(by, gap) for extra, by, gap in zip(more, steps, gaps, strict=True))
        or is_ambiguous(form)
    ):
        raise UnfitError
    channels = kernel.shape[1] * groups
    _check_bias(bias, kernel, channels)
    sizes = [
        (size - 1) * by - 2 * pad + gap * (width - 1) + extra + 1
        for size, by, pad, gap, width, extra in zip(
            form.shape[2:], steps, pads, gaps, kernel.shape[2:], more, strict=True
        )
    ]
    if min(sizes) < 1:
        raise UnfitError
    return Form((form.shape[0], channels, *sizes), None, form.dtype)


# Normalisation and pooling


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: Any = False,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Form:
    """Return the form of a batch normalization."""
    form = given(input)
    if type(training) is not bool or len(form.shape) < 2 or not are_numbers(momentum, eps):
        raise UnfitError
    is_last = has_channels_last(form)
    if not form.dtype.is_floating_point or not (is_last or form.is_contiguous):
        raise UnfitError
    if training and form.numel() == form.shape[1]:  # torch rejects one value per channel
        raise UnfitError
    parameters = [parameter for parameter in (weight, bias) if parameter is not None]
    for parameter in map(plain, (running_mean, running_var, *parameters)):
        if parameter.shape != (form.shape[1],) or parameter.dtype != form.dtype:
            raise UnfitError
    return Form(form.shape, form.strides if is_last else None, form.dtype)


def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
) -> Form:
    """Return the form of a layer normalization."""
    form = given(input)
    if type(normalized_shape) not in (tuple, list) or not normalized_shape or not are_numbers(eps):
        raise UnfitError
    shape = tuple(normalized_shape)
    if form.shape[-len(shape) :] != shape or not form.dtype.is_floating_point:
        raise UnfitError
    for parameter in (weight, bias):
        if parameter is not None and (
            plain(parameter).shape != shape or parameter.dtype != form.dtype
        ):
            raise UnfitError
    return Form(form.shape, None, form.dtype)


def _reduced(form: Form, dim: Any, keepdim: Any) -> tuple[int, ...]:
    """Return the shape after reducing one or more axes."""
    dims = (dim,) if type(dim) is int else dim
    if type(dims) not in (tuple, list) or not dims or type(keepdim) is not bool:
        raise UnfitError
    axes = {axis_of(form, axis) for axis in dims}
    if len(axes) != len(dims):
        raise UnfitError
    return tuple(
        1 if axis in axes else size
        for axis, size in enumerate(form.shape)
        if keepdim or axis not in axes
    )


def mean(input: Any, dim: Any = None, keepdim: Any = False) -> Form:
    """Return the form of a mean over axes."""
    form = given(input)
    if not form.dtype.is_floating_point:
        raise UnfitError
    return Form(_reduced(form, dim, keepdim), None, form.dtype)


def total(input: Any, dim: Any = None, keepdim: Any = False) -> Form:
    """Return the form of a sum over axes."""
    form = given(input)
    if not form.is_contiguous or form.dtype.is_complex or type(keepdim) is not bool:
        raise UnfitError
    dtype = form.dtype if form.dtype.is_floating_point else torch.int64
    if dim is None:
        if keepdim:
            raise UnfitError
        return Form((), None, dtype)
    return Form(_reduced(form, dim, keepdim), None, dtype)


def cumulated(input: Any, dim: Any) -> Form:
    """Return the form of a cumulative sum or product."""
    form = given(input)
    axis_of(form, dim)
    if not form.is_contiguous or form.dtype.is_complex:
        raise UnfitError
    return Form(form.shape, None, form.dtype if form.dtype.is_floating_point else torch.int64)


def group_norm(
    input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5
) -> Form:
    """Return the form of a group normalization."""
    form = plain(input)
    if (
        len(form.shape) < 2
        or type(num_groups) is not int
        or num_groups < 1
        or form.shape[1] % num_groups
        or not are_numbers(eps)
        or (len(form.shape) in (4, 5) and is_ambiguous(form))
    ):
        raise UnfitError
    for parameter in (weight, bias):
        if parameter is not None and (
            plain(parameter).shape != form.shape[1:2] or parameter.dtype != form.dtype
        ):
            raise UnfitError
    return Form(form.shape, None, form.dtype)


def embedding(input: Any, weight: Any, padding_idx: Any = None, *rest: Any) -> Form:
    """Return the form of an embedding lookup."""
    places, table = given(input), plain(weight)
    if places.dtype not in (torch.int64, torch.int32) or len(table.shape) != 2:
        raise UnfitError
    if type(padding_idx) not in (int, type(None)) or any(
        option not in (None, False) and option != 2.0 for option in rest
    ):
        raise UnfitError
    if not places.is_contiguous and order_of(places) != list(range(len(places.shape))):
        raise UnfitError
    return Form((*places.shape, table.shape[1]), None, table.dtype)


def index_select(input: Any, dim: Any, index: Any) -> Form:
    """Return the form of slices at positions of an axis."""
    form, places = given(input), given(index)
    axis = axis_of(form, dim)
    if len(places.shape) != 1 or places.dtype not in (torch.int64, torch.int32):
        raise UnfitError
    if not form.is_contiguous or (len(form.shape) in (4, 5) and is_ambiguous(form)):
        raise UnfitError
    shape = (*form.shape[:axis], places.shape[0], *form.shape[axis + 1 :])
    return Form(shape, None, form.dtype)


def gather(input: Any, dim: Any, index: Any) -> Form:
    """Return the form of elements gathered along an axis."""
    form, places = given(input), given(index)
    axis = axis_of(form, dim)
    if places.dtype is not torch.int64:
        raise UnfitError
    if len(places.shape) != len(form.shape) or any(
        size > most
        for place, (size, most) in enumerate(zip(places.shape, form.shape, strict=True))
        if place != axis
    ):
        raise UnfitError
    return Form(places.shape, None, form.dtype)


convolution_1d, convolution_2d, convolution_3d = (_convolution(rank) for rank in (1, 2, 3))
