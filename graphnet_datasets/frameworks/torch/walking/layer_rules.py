"""Rules for pooling, padding, interpolation, normalization and attention."""

from __future__ import annotations

import math
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

_RESIZED = ("nearest", "nearest-exact", "bilinear", "bicubic")
_SMOOTH = ("bilinear", "bicubic")
_SWITCHES = ("is_causal", "use_separate_proj_weight")


def _image(input: Any) -> Form:
    """Return an image form that is contiguous or channels-last, but not both."""
    form = given(input)
    is_plain = form.is_contiguous and not (len(form.shape) in (4, 5) and is_ambiguous(form))
    if not form.dtype.is_floating_point or not (is_plain or has_channels_last(form)):
        raise UnfitError
    return form


def _resized(form: Form, sizes: list[int]) -> Form:
    """Return an image form with other spatial sizes and the same memory order."""
    if min(sizes) < 1:
        raise UnfitError
    shape = (*form.shape[: -len(sizes)], *sizes)
    strides = None if form.is_contiguous else strides_in(shape, [0, 2, 3, 1])
    return Form(shape, strides, form.dtype)


def _pool(form: Form, window: Sizes, step: Sizes, pad: Sizes, gap: Sizes) -> Form:
    if len(form.shape) != 4 or min(window) < 1 or min(step) < 1 or min(pad) < 0 or min(gap) < 1:
        raise UnfitError
    if any(2 * edge > size for edge, size in zip(pad, window, strict=True)):
        raise UnfitError
    sizes = [
        (size + 2 * edge - space * (width - 1) - 1) // stride + 1
        for size, edge, space, width, stride in zip(
            form.shape[2:], pad, gap, window, step, strict=True
        )
    ]
    return _resized(form, sizes)


def max_pool(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: Any = False,
    return_indices: Any = False,
) -> Form:
    """Return the form of a maximum pooling."""
    if ceil_mode is not False or return_indices is not False:
        raise UnfitError
    window = integers(kernel_size, 2)
    step = integers(kernel_size if stride is None else stride, 2)
    return _pool(_image(input), window, step, integers(padding, 2), integers(dilation, 2))


def average_pool(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: Any = False,
    count_include_pad: Any = True,
    divisor_override: Any = None,
) -> Form:
    """Return the form of an average pooling."""
    is_usual = type(count_include_pad) is bool and divisor_override is None
    if type(ceil_mode) is not bool or not is_usual:
        raise UnfitError
    window = integers(kernel_size, 2)
    step = integers(kernel_size if stride is None else stride, 2)
    form, pads = _image(input), integers(padding, 2)
    if ceil_mode and any(
        (size + 2 * pad - width) % by
        for size, pad, width, by in zip(form.shape[2:], pads, window, step, strict=False)
        if by > 0
    ):
        raise UnfitError
    return _pool(form, window, step, pads, (1, 1))


def adaptive_pool(input: Any, output_size: Any) -> Form:
    """Return the form of an adaptive pooling."""
    form = _image(input)
    if len(form.shape) != 4 or 1 in form.shape[1:]:
        raise UnfitError
    return _resized(form, list(integers(output_size, 2)))


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: Any = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: Any = False,
) -> Form:
    """Return the form of an image resized by interpolation."""
    form = _image(input)
    corners = (None, False, True) if mode in _SMOOTH else (None,)
    if (
        len(form.shape) != 4
        or mode not in _RESIZED
        or align_corners not in corners
        or recompute_scale_factor not in (None, False)
        or antialias is not False
        or (size is None) == (scale_factor is None)
    ):
        raise UnfitError
    if size is not None:
        return _resized(form, list(integers(size, 2)))
    factors = scale_factor if type(scale_factor) in (tuple, list) else [scale_factor] * 2
    if len(factors) != 2 or not all(
        type(factor) in (int, float) and factor > 0 for factor in factors
    ):
        raise UnfitError
    scaled = [length * factor for length, factor in zip(form.shape[2:], factors, strict=True)]
    if not all(map(math.isfinite, scaled)):
        raise UnfitError
    return _resized(form, [math.floor(length) for length in scaled])


def pad(input: Any, pad: Any, mode: Any = "constant", value: Any = None) -> Form:
    """Return the form of a tensor with padding."""
    form = plain(input)
    edges = integers(pad, len(pad)) if type(pad) in (tuple, list) and pad else ()
    if mode != "constant" or type(value) not in (int, float, type(None)):
        raise UnfitError
    if not edges or len(edges) % 2 or len(edges) > 2 * len(form.shape) or min(edges) < 0:
        raise UnfitError
    if len(form.shape) in (4, 5) and is_ambiguous(form):
        raise UnfitError
    shape = list(form.shape)
    for place, (before, after) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
        shape[-1 - place] += before + after
    return Form(tuple(shape), None, form.dtype)


def glu(input: Any, dim: Any = -1) -> Form:
    """Return the form of a gated linear unit, which halves the size of an axis."""
    form = plain(input)
    axis = axis_of(form, dim)
    if form.shape[axis] % 2:
        raise UnfitError
    shape = (*form.shape[:axis], form.shape[axis] // 2, *form.shape[axis + 1 :])
    return Form(shape, None, form.dtype)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Form:
    """Return the form of `rms_norm`."""
    form = plain(input)
    if type(normalized_shape) not in (tuple, list) or not normalized_shape:
        raise UnfitError
    shape = tuple(normalized_shape)
    if form.shape[-len(shape) :] != shape or type(eps) not in (int, float, type(None)):
        raise UnfitError
    if weight is not None and (plain(weight).shape != shape or weight.dtype != form.dtype):
        raise UnfitError
    return Form(form.shape, None, form.dtype)


def fused_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Form:
    """Return the form of CPU attention, which has the memory order of the query."""
    query_form, key_form, value_form = given(query), given(key), given(value)
    if attn_mask is not None:
        cover = given(attn_mask)
        mask_shape = (*query_form.shape[:-1], *key_form.shape[2:3])
        if (
            is_causal is not False
            or len(cover.shape) != 4
            or cover.dtype not in (torch.bool, query_form.dtype)
            or any(
                size not in (1, most) for size, most in zip(cover.shape, mask_shape, strict=False)
            )
        ):
            raise UnfitError
    if (
        dropout_p != 0.0
        or type(is_causal) is not bool
        or enable_gqa is not False
        or type(scale) not in (int, float, type(None))
        or any(
            len(operand.shape) != 4 or operand.strides[3] != 1
            for operand in (query_form, key_form, value_form)
        )
        or key_form.shape != value_form.shape
        or query_form.shape[:2] != key_form.shape[:2]
        or query_form.shape[3] != key_form.shape[3]
        or not query_form.dtype == key_form.dtype == value_form.dtype
        or query_form.dtype not in (torch.float32, torch.bfloat16, torch.float16)
    ):
        raise UnfitError
    strides = (
        None if query_form.is_contiguous else strides_in(query_form.shape, order_of(query_form))
    )
    return Form(query_form.shape, strides, query_form.dtype)


def attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: Any,
    num_heads: Any,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: Any,
    dropout_p: Any,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: Any = True,
    key_padding_mask: Any = None,
    need_weights: Any = True,
    attn_mask: Any = None,
    average_attn_weights: Any = True,
    **rest: Any,
) -> tuple[Form, Form | None]:
    """Return the forms of unmasked multi-head attention and its weights, if requested."""
    query_form, width = given(query), embed_dim_to_check
    if (
        not all(option in (None, False) for option in (bias_k, bias_v, key_padding_mask, attn_mask))
        or add_zero_attn is not False
        or training is not False
        or type(need_weights) is not bool
        or type(average_attn_weights) is not bool
        or any(
            option is not (False if name in _SWITCHES else None) for name, option in rest.items()
        )
        or type(width) is not int
        or type(num_heads) is not int
        or type(dropout_p) not in (int, float)
        or num_heads < 1
        or width % num_heads
    ):
        raise UnfitError
    key_form = given(key)
    if (
        len(query_form.shape) != 3
        or key_form.shape != given(value).shape
        or query_form.shape[1:] != key_form.shape[1:]
        or query_form.shape[2] != width
    ):
        raise UnfitError
    sizes = {"in": (3 * width, width), "out": (width, width)}
    weights = [(in_proj_weight, sizes["in"]), (out_proj_weight, sizes["out"])]
    biases = [(in_proj_bias, sizes["in"][:1]), (out_proj_bias, sizes["out"][:1])]
    parameters = [*weights, *(bias for bias in biases if bias[0] is not None)]
    if any(
        plain(parameter).shape != shape or parameter.dtype != query_form.dtype
        for parameter, shape in parameters
    ):
        raise UnfitError
    if not query_form.dtype == key_form.dtype == value.dtype:
        raise UnfitError
    result = Form(query_form.shape, None, query_form.dtype)
    if not need_weights:
        return result, None
    heads = () if average_attn_weights else (num_heads,)
    shape = (query_form.shape[1], *heads, query_form.shape[0], key_form.shape[0])
    return result, Form(shape, None, query_form.dtype)
