"""Floating-point operations of single ATen calls.

Matrix products, convolutions and attention follow `torch.utils.flop_counter`, which counts a
multiplication and an addition as two. Everything else is counted here, per element: one for an
elementwise operator, whatever it computes, and a few for what is made of several passes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import conv_flop_count, flop_registry, sdpa_flop_count

from ..operators.words import words
from .live_memory import tensors_in

Formula = Callable[[Sequence[Any], Any], int]
"""From the arguments and the result of a call to its number of operations."""

MOVES_DATA = words(
    """
    _copy_from _local_scalar_dense _nested_tensor_from_mask _pin_memory _reshape_alias _resize_
    _shape_as_tensor _to_copy _unsafe_view alias arange as_strided_copy atleast_1d atleast_2d
    atleast_3d bernoulli bernoulli_ bincount block_diag broadcast_to bucketize cat channel_shuffle
    clone col2im complex constant_pad_nd copy copy_ diag_embed diagonal_copy dropout embedding
    empty empty_like empty_permuted empty_strided equal expand_copy exponential_ eye fill fill_
    flip full full_like gather hann_window im2col index index_copy index_copy_ index_fill
    index_fill_ index_put index_put_ index_select is_nonzero item lift lift_fresh lift_fresh_copy
    linspace logspace masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select
    multinomial narrow_copy new_empty new_empty_strided new_full new_ones new_zeros nonzero
    nonzero_static normal normal_ one_hot ones ones_like permute_copy pixel_shuffle
    pixel_unshuffle polar rand rand_like randint randint_like randn randn_like random random_
    randperm reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave
    replication_pad1d replication_pad2d replication_pad3d resize_ roll rot90 scalar_tensor scatter
    scatter_ searchsorted select_copy select_scatter set_ slice_copy slice_scatter split_copy
    split_with_sizes_copy squeeze_copy stack sym_numel sym_size sym_storage_offset sym_stride take
    to tril tril_ tril_indices triu triu_ triu_indices unbind_copy unfold_copy uniform uniform_
    unsafe_split unsafe_split_with_sizes unsqueeze_copy upsample_nearest1d upsample_nearest2d
    upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d view_copy where zero zero_ zeros zeros_like _assert_async
    _assert_tensor_metadata _assert_scalar
    """
)
"""ATen operators that compute nothing: they make, copy, choose or draw elements."""

_PER_INPUT_ELEMENT = {
    **dict.fromkeys(
        words(
            """
            all amax amin aminmax any argmax argmin bincount count_nonzero cummax cummin cumprod
            cumsum histc kthvalue logcumsumexp max median min mode nanmedian nansum prod sum trace
            index_add index_add_ scatter_add scatter_add_ scatter_reduce scatter_reduce_
            index_reduce segment_reduce _embedding_bag _embedding_bag_forward_only unique_dim
            _unique2 unique_consecutive _adaptive_avg_pool2d _adaptive_avg_pool3d
            adaptive_max_pool2d adaptive_max_pool3d mean
            """
        ),
        1,
    ),
    **dict.fromkeys(words("norm linalg_vector_norm dist"), 2),
    **dict.fromkeys(words("std var std_mean var_mean logsumexp"), 3),
    **dict.fromkeys(words("_softmax _log_softmax _safe_softmax"), 5),
}
"""Per element of the first argument: a reduction costs one, a softmax five (maximum, difference,
exponential, sum, quotient)."""

_NORMS = {
    **dict.fromkeys(words("native_layer_norm native_group_norm native_batch_norm"), 8),
    **dict.fromkeys(words("_native_batch_norm_legit _native_batch_norm_legit_functional"), 8),
    "_native_batch_norm_legit_no_training": 4,
    "_fused_rms_norm": 4,
    **dict.fromkeys(words("cudnn_batch_norm _batch_norm_with_update"), 8),
}
"""Per element: mean (1), variance (3), difference and quotient (2), scale and shift (2)."""

_SORTS = words("sort topk argsort msort")


def count_flops(function: torch._ops.OpOverload, args: Sequence[Any], result: Any) -> int | None:
    """Return the operations of one ATen call on tensors or fake tensors; None without a formula.

    >>> a = torch.ones(2, 3)
    >>> count_flops(torch.ops.aten.mm.default, (a, a.T), a @ a.T)
    24
    >>> count_flops(torch.ops.aten.relu.default, (a,), a)
    6
    """
    formula = _formula_of(function)
    if formula is None:
        return None
    try:
        flops = formula(args, result)
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError, AssertionError):
        return None  # a call in a form that the formula does not know
    return flops if type(flops) is int else None


@functools.cache
def _formula_of(function: torch._ops.OpOverload) -> Formula | None:
    packet = function.overloadpacket
    name = function._schema.name.partition("::")[2]
    if packet in flop_registry:
        library = flop_registry[packet]
        return lambda args, result: library(*args, out_val=result)
    if name in _OWN:
        return _OWN[name]
    if is_view(function) or name in MOVES_DATA:
        return lambda _args, _result: 0
    if name in _PER_INPUT_ELEMENT:
        weight = _PER_INPUT_ELEMENT[name]
        return lambda args, _result: weight * _first(args).numel()
    if name in _NORMS:
        weight = _NORMS[name]
        return lambda args, _result: weight * _first(args).numel()
    if name in _SORTS:
        return _sort_flops
    if torch.Tag.pointwise in function.tags or name.removesuffix("_") in _POINTWISE:
        return _elementwise
    return None


_OTHER_VIEWS = words("_unsafe_view as_strided_ squeeze_ swapdims_ t_ transpose_ unsqueeze_ detach_")
"""Views that their schema does not tell: of fresh memory, or of the tensor itself."""


@functools.cache
def is_view(function: torch._ops.OpOverload) -> bool:
    """Tell whether a call gives other names to the memory of its argument and moves nothing."""
    returns = function._schema.returns
    return function._schema.name.partition("::")[2] in _OTHER_VIEWS or (
        bool(returns)
        and all(each.alias_info is not None and not each.alias_info.is_write for each in returns)
    )


_POINTWISE = words(
    """
    addcdiv addcmul celu elu gelu glu hardsigmoid hardswish hardtanh leaky_relu lerp
    log_sigmoid_forward mish native_dropout prelu _prelu_kernel rrelu_with_noise silu softplus
    softshrink threshold clamp clamp_min clamp_max isin nan_to_num polygamma special_erfcx
    view_as_complex mse_loss smooth_l1_loss huber_loss binary_cross_entropy nll_loss_forward
    nll_loss2d_forward _fused_dropout fake_quantize_per_tensor_affine addr outer cross linalg_cross
    """
)
"""Elementwise operators that torch does not tag as such."""


def _first(args: Sequence[Any]) -> torch.Tensor:
    return next(tensors_in(list(args)))


def _elementwise(_args: Sequence[Any], result: Any) -> int:
    if isinstance(result, tuple):  # a mask or a buffer stands beside what was computed
        return next(tensors_in(result)).numel()
    return sum(tensor.numel() for tensor in tensors_in(result))


def _sort_flops(args: Sequence[Any], _result: Any) -> int:
    tensor = args[0]
    dim = next((arg for arg in args[1:] if type(arg) is int), -1)
    length = tensor.shape[dim] if tensor.dim() else 1
    return tensor.numel() * max(1, math.ceil(math.log2(max(length, 2))))


def _matrix_vector(args: Sequence[Any], _result: Any) -> int:
    return 2 * args[0].numel()


def _attention(args: Sequence[Any], _result: Any) -> int:
    return sdpa_flop_count(args[0].shape, args[1].shape, args[2].shape)


def _convolution(args: Sequence[Any], result: Any) -> int:
    return conv_flop_count(args[0].shape, args[1].shape, result.shape)


def _grouped_product(args: Sequence[Any], result: Any) -> int:
    # Each row of the result is a product with one group's matrix.
    return 2 * result.numel() * args[0].shape[-1]


def _pool(args: Sequence[Any], result: Any) -> int:
    """Return one operation per element of a window; `kernel_size` is the second argument."""
    tensor = next(tensors_in(result))
    sizes = args[1]
    if len(sizes) == 1:
        sizes = list(sizes) * (tensor.dim() - 2)
    return tensor.numel() * math.prod(sizes)


def _interpolation(taps: int) -> Formula:
    return lambda _args, result: 2 * taps * result.numel()


def _distances(args: Sequence[Any], result: Any) -> int:
    return 3 * result.numel() * args[0].shape[-1]


def _lstm_layer(args: Sequence[Any], _result: Any) -> int:
    # Input and hidden matrices once per step, then about ten operations per hidden element.
    tensor, input_weight, hidden_weight = args[0], args[1], args[2]
    steps = tensor.numel() // tensor.shape[-1]
    hidden = hidden_weight.shape[-1]
    return 2 * steps * (input_weight.numel() + hidden_weight.numel()) + 10 * steps * hidden


def _encoder_layer(args: Sequence[Any], result: Any) -> int:
    # Four products with weights per token and two in attention; norms, bias and activation follow.
    tensor, width = args[0], args[1]
    batch, length = tensor.shape[:2]
    weights = sum(args[place].numel() for place in (3, 5, 14, 16))
    products = 2 * batch * length * weights + 4 * batch * length * length * width
    return products + 2 * 8 * result.numel() + batch * length * args[14].shape[0]


def _gates(weight: int) -> Formula:
    return lambda _args, result: weight * next(tensors_in(result)).numel()


def _fourier(args: Sequence[Any], result: Any) -> int:
    """Return 5 n log2 n per transform of complex elements, half of it for real ones."""
    shape = (args[0] if args[0].numel() >= result.numel() else result).shape
    dims = args[1]
    size = math.prod(shape[dim] for dim in dims)
    is_complex = args[0].is_complex() and result.is_complex()
    flops = 5 * math.prod(shape) * math.log2(max(size, 2))
    return round(flops if is_complex else flops / 2)


def _cholesky(args: Sequence[Any], _result: Any) -> int:
    return args[0].numel() * args[0].shape[-1] // 3


_OWN: dict[str, Formula] = {
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "mkldnn_convolution": _convolution,
    "mv": _matrix_vector,
    "dot": _matrix_vector,
    "vdot": _matrix_vector,
    "addmv": lambda args, _result: 2 * args[1].numel(),
    "addbmm": lambda args, _result: 2 * args[1].numel() * args[2].shape[-1],
    "_int_mm": lambda args, result: 2 * result.numel() * args[0].shape[-1],
    "linear": lambda args, result: 2 * result.numel() * args[0].shape[-1],
    "_grouped_mm": _grouped_product,
    "_scaled_grouped_mm": _grouped_product,
    "max_pool1d": _pool,
    "max_pool2d_with_indices": _pool,
    "max_pool3d_with_indices": _pool,
    "avg_pool1d": _pool,
    "avg_pool2d": _pool,
    "avg_pool3d": _pool,
    "upsample_linear1d": _interpolation(2),
    "upsample_bilinear2d": _interpolation(4),
    "_upsample_bilinear2d_aa": _interpolation(4),
    "upsample_trilinear3d": _interpolation(8),
    "upsample_bicubic2d": _interpolation(16),
    "_upsample_bicubic2d_aa": _interpolation(16),
    "grid_sampler_2d": _interpolation(4),
    "grid_sampler_3d": _interpolation(8),
    "_cdist_forward": _distances,
    "_euclidean_dist": _distances,
    "mkldnn_rnn_layer": _lstm_layer,
    "_thnn_fused_lstm_cell": _gates(10),
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "_weight_norm_interface": _gates(3),
    "_thnn_fused_gru_cell": _gates(10),
    "_fft_c2c": _fourier,
    "_fft_r2c": _fourier,
    "_fft_c2r": _fourier,
    "linalg_cholesky_ex": _cholesky,
}
