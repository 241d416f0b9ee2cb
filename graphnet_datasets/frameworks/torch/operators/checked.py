"""Which operators of the table may run in any process: a list of names, decided by a fuzzer.

An operator is *checked* if its kernel, or this library in its place, compares sizes, indices and
divisors before it uses them, so that no operands, however wrong, make it read or write beyond its
tensors or end the process. Whatever does not stand here is *unchecked*: it runs in processes that
may be lost, or where the caller of `materialize` allows it. `benchmarks/fuzz_operators.py` decides;
a name that dies there leaves this list, or gets a check in `walking/operands.py`.
"""

from __future__ import annotations

import functools

from .table import ATEN_PREFIX, METHOD_PREFIX, PRIMS_PREFIX, Operator
from .words import words

CHECKED = words(
    """
    abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d
    adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices add addbmm
    addcdiv addcmul addmm addmv addr adjoint affine_grid alias alias_copy all allclose amax amin
    aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argsort argwhere as_strided as_strided_copy as_strided_scatter as_tensor asin asinh atan atan2
    atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d baddbmm bartlett_window
    batch_norm bernoulli bfloat16 bilinear binary_cross_entropy binary_cross_entropy_with_logits
    bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    blackman_window block_diag bmm bool broadcast_shapes broadcast_tensors broadcast_to bucketize
    byte cat cdist cdouble ceil celu cfloat chalf channel_shuffle char cholesky cholesky_ex chunk
    clamp clamp_max clamp_min clip clone col2im column_stack complex concat concatenate cond conj
    conj_physical constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d convolution copy copysign corrcoef cos cosh cosine_embedding_loss
    cosine_similarity count_nonzero cov cpu cross cross_entropy cross_entropy_loss cuda cummax
    cummin cumprod cumsum cumulative_trapezoid deg2rad det detach detach_copy diag diag_embed
    diagflat diagonal diagonal_copy diagonal_scatter diff digamma dim dim_order dist div divide dot
    double dropout dropout1d dropout2d dropout3d dsplit dstack eigh eigvalsh einsum
    element_size elu embedding embedding_bag empty empty_like empty_permuted empty_strided entr eq
    equal erf erfc erfcx erfinv exp exp2 expand expand_as expand_copy expit expm1 eye fft fft2
    fftfreq fftn fftshift fill fill_diagonal fix flatten flip fliplr flipud float float_power floor
    floor_divide fmax fmin fmod fold frac frexp full full_like gammaln gather gaussian_nll_loss ge
    gelu ger get_device glu glu_jvp greater greater_equal grid_sample grid_sampler grid_sampler_2d
    grid_sampler_3d group_norm grouped_mm gru gru_cell gt half hamming_window hann_window hardshrink
    hardsigmoid hardswish hardtanh heaviside hfft hfft2 hfftn hinge_embedding_loss histc hsplit
    hstack huber_loss hypot i0 i0e i1 i1e ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn im2col imag
    index index_add index_copy index_fill index_put index_select inner instance_norm int interpolate
    inv inv_ex inverse ipu irfft irfft2 irfftn is_complex is_conj is_contiguous is_floating_point
    is_neg is_nonzero is_same_size is_signed is_tensor isclose isfinite isin isinf isnan isneginf
    isposinf isreal istft item kaiser_window kl_div kron kthvalue l1_loss layer_norm ldexp le
    leaky_relu lerp less less_equal lgamma lift_fresh lift_fresh_copy linear linspace
    local_response_norm log log10 log1p log2 log_ndtr log_sigmoid log_sigmoid_forward log_softmax
    logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit
    logsigmoid logspace logsumexp long lp_pool1d lp_pool2d lp_pool3d lstm lstm_cell lt mH mT
    margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_H matrix_norm
    matrix_power matrix_rank max max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices maximum mean median meshgrid min
    minimum mish mm mode moveaxis movedim mse_loss msort mtia mul multi_dot
    multi_head_attention_forward multilabel_soft_margin_loss multiply mv nan_to_num nanmean
    nanmedian nanquantile nansum narrow narrow_copy native_batch_norm native_channel_shuffle
    native_group_norm native_layer_norm ndimension ndtr ndtri ne neg negative nelement new_empty
    new_empty_strided new_full new_ones new_tensor new_zeros nextafter nll_loss nll_loss_nd nonzero
    nonzero_static norm normal normal_functional normalize not_equal numel numpy_T one_hot ones
    ones_like outer pad pad_sequence pairwise_distance pdist permute permute_copy pinv pinverse
    pixel_shuffle pixel_unshuffle poisson_nll_loss polar positive pow prelu prod psi quantile
    rad2deg rand rand_like randint randint_like randn randn_like random randperm range ravel real
    reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 remainder renorm repeat
    repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape reshape_as
    resolve_conj resolve_neg rfft rfft2 rfftfreq rfftn rms_norm rnn_relu rnn_relu_cell rnn_tanh
    rnn_tanh_cell roll rot90 round row_stack rsqrt rsub scalar_tensor scaled_dot_product_attention
    scatter scatter_add scatter_reduce searchsorted select select_copy select_scatter selu sgn short
    sigmoid sign signbit silu sin sinc sinh size slice slice_copy slice_scatter slogdet
    smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign solve solve_ex
    solve_triangular sort split split_copy split_with_sizes split_with_sizes_copy sqrt square
    squeeze squeeze_copy stack std std_mean stft storage_offset stride sub subtract sum sum_to_size
    svdvals swapaxes swapdims sym_constrain_range sym_constrain_range_for_size sym_float sym_int
    sym_is_contiguous sym_ite sym_max sym_min sym_not sym_numel sym_size sym_sqrt sym_storage_offset
    sym_stride sym_sum t t_copy take_along_dim tan tanh tanhshrink tensor tensor_split tensordot
    tensorinv tensorsolve threshold tile to tolist topk trace transpose transpose_copy trapezoid
    trapz tril tril_indices triplet_margin_loss triplet_margin_with_distance_loss triu triu_indices
    true_divide trunc type type_as unbind unbind_copy unflatten unfold unfold_copy uniform unique
    unique_consecutive unique_dim unique_dim_consecutive unsqueeze unsqueeze_copy
    upsample upsample_bicubic2d upsample_bilinear upsample_bilinear2d upsample_linear1d
    upsample_nearest upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    var var_mean vdot vecdot vector_norm view view_as view_as_complex view_as_complex_copy
    view_as_real view_as_real_copy view_copy vsplit vstack where xlog1py xlogy xpu zero zeros
    zeros_like
    """
)
"""Public names, without namespace and without the underscore of their in-place forms.

`torch.X`, `torch.Tensor.X`, `torch.nn.functional.X`, `torch.linalg.X`, `torch.ops.aten.X` and so on
come to the same kernels; each of them was fuzzed by itself.
"""

CHECKED_PRIVATE = words(
    """
    torch._assert torch._assert_async torch._assert_scalar torch._assert_tensor_metadata
    torch._check torch._check_index torch._check_is_size torch._check_tensor_all torch._check_type
    torch._check_value torch._constrain_as_size torch._functional_assert_async
    torch._functional_assert_scalar torch._functional_sym_constrain_range
    torch._functional_sym_constrain_range_for_size torch._is_all_true torch._is_any_true
    torch._native_batch_norm_legit torch._native_batch_norm_legit_no_training
    torch._shape_as_tensor torch._weight_norm torch._softmax torch._log_softmax
    torch._conj torch._grouped_mm torch._neg_view torch._safe_softmax
    torch._transformer_encoder_layer_fwd
    torch.Tensor._conj torch.Tensor._is_all_true torch.Tensor._is_any_true torch.Tensor._neg_view
    torch.ops.aten._adaptive_avg_pool2d torch.ops.aten._adaptive_avg_pool3d
    torch.ops.aten._assert_async torch.ops.aten._assert_scalar
    torch.ops.aten._assert_tensor_metadata torch.ops.aten._cdist_forward torch.ops.aten._conj
    torch.ops.aten._functional_assert_async torch.ops.aten._functional_assert_scalar
    torch.ops.aten._grouped_mm torch.ops.aten._transformer_encoder_layer_fwd
    torch.ops.aten._is_all_true torch.ops.aten._is_any_true torch.ops.aten._local_scalar_dense
    torch.ops.aten._log_softmax torch.ops.aten._native_batch_norm_legit
    torch.ops.aten._native_batch_norm_legit_functional
    torch.ops.aten._native_batch_norm_legit_no_training torch.ops.aten._safe_softmax
    torch.ops.aten._softmax torch.ops.aten._to_copy torch.ops.aten._unsafe_view
    torch.ops.aten._weight_norm
    """
)
"""Names that begin with an underscore and stand in captured graphs; ATen's without overload."""

CHECKED_GRADIENTS = words(
    """
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward _log_softmax_backward_data
    _prelu_kernel _prelu_kernel_backward _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward _softmax_backward_data
    _upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest_exact2d
    _upsample_nearest_exact2d_backward _upsample_nearest_exact3d
    _upsample_nearest_exact3d_backward _weight_norm_interface _weight_norm_interface_backward
    avg_pool2d_backward avg_pool3d_backward convolution_backward elu_backward gelu_backward
    glu_backward hardsigmoid_backward hardswish_backward hardtanh_backward huber_loss_backward
    leaky_relu_backward log_sigmoid_backward logit_backward mish_backward mse_loss_backward
    native_batch_norm_backward native_dropout_backward native_group_norm_backward
    native_layer_norm_backward nll_loss2d_forward nll_loss_forward select_backward
    sigmoid_backward silu_backward slice_backward smooth_l1_loss_backward softplus_backward
    softshrink_backward tanh_backward threshold_backward upsample_bicubic2d_backward
    upsample_bilinear2d_backward upsample_linear1d_backward upsample_nearest1d_backward
    upsample_nearest2d_backward upsample_nearest3d_backward upsample_trilinear3d_backward
    """
)
"""ATen packets that autograd calls: what gradients are made of, and forward ones behind them.

Operands that their kernels trust are compared by `walking/gradient_operands.py`.
"""

_UNCHECKED = words("torch.Tensor.index torch.embedding_bag torch.ops.aten.embedding_bag")
"""Namesakes of checked operators that are none.

`index` is Python of torch that goes round a loop as often as a number says; bags are bounded by
elements of an operand, and only `torch.nn.functional.embedding_bag` can do without.
"""

_ARITHMETIC = words(
    """
    __abs__ __add__ __and__ __bool__ __complex__ __div__ __eq__ __float__ __floordiv__ __ge__
    __getitem__ __gt__ __iadd__ __iand__ __idiv__ __ifloordiv__ __ilshift__ __imod__ __imul__
    __index__ __int__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__
    __len__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__
    __radd__ __rand__ __rdiv__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__
    __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ __truediv__
    __xor__
    """
)
_PUBLIC = words("torch torch.nn.functional torch._C._nn torch.linalg torch.fft torch.special")
_PYTHON = ("operator", "math", "builtins")


@functools.lru_cache(maxsize=16384)
def is_checked(operator: Operator) -> bool:
    """Tell whether an operator may run in any process.

    >>> from .table import lookup
    >>> is_checked(lookup("torch.relu")), is_checked(lookup("torch.ops.aten._fused_adam_"))
    (True, False)
    """
    if operator.is_state or operator.kind == "attribute":
        return True
    name = operator.name
    namespace, _, last = name.rpartition(".")
    if namespace in _PYTHON:
        return True
    if name.startswith(PRIMS_PREFIX):
        return False
    if name.startswith(ATEN_PREFIX):
        last, _, overload = name.removeprefix(ATEN_PREFIX).partition(".")
        if overload.endswith("out") or _is_writing(operator, last):
            return False
        if last in CHECKED_GRADIENTS:
            return True
        namespace, name = ATEN_PREFIX[:-1], ATEN_PREFIX + last
        last = last if last in CHECKED else _without_room(last)
    elif namespace == METHOD_PREFIX[:-1]:
        if last in _ARITHMETIC:
            return True
    elif namespace not in _PUBLIC:
        return False
    if name in CHECKED_PRIVATE:
        return True
    if name in _UNCHECKED:
        return False
    if last.startswith("_"):
        return last in _ARITHMETIC
    return (last[:-1] if last.endswith("_") else last) in CHECKED


_WALKABLE = words(
    """
    torch.ops.aten._scaled_dot_product_efficient_attention
    torch.ops.aten._scaled_dot_product_flash_attention
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    """
)
"""Unchecked operators whose shapes may be asked for in any process, by rules written in Python."""


def is_walkable(operator: Operator) -> bool:
    """Tell whether an operator may be called on tensors without elements in any process."""
    if is_checked(operator) or operator.name.startswith(PRIMS_PREFIX):
        return True
    name = operator.name
    if name.startswith(ATEN_PREFIX):
        name = ATEN_PREFIX + name.removeprefix(ATEN_PREFIX).partition(".")[0]
    return name in _WALKABLE


def _is_writing(operator: Operator, packet: str) -> bool:
    """Tell whether an overload writes to an argument of its own for it (`grad_input`, `values`)."""
    return operator.is_inplace and not packet.endswith("_")


def _without_room(packet: str) -> str:
    """Return the public name of `linalg_norm`, `fft_rfft` or `special_expit`."""
    for room in ("linalg_", "fft_", "special_"):
        if packet.startswith(room):
            return packet.removeprefix(room)
    return packet
