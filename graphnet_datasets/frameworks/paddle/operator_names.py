"""The names of paddle's operators that a sample may call, reviewed by hand, as plain data.

Each name was read against one question: does it only compute on the tensors it is given? What
talks to other processes (`all_reduce`, `send_v2`), touches files or global state (`read_file`,
`check_numerics`, `set_parameter`), runs code or other programs (`run_program`, `tensorrt_engine`),
prints, or addresses memory by raw strides and offsets without checking them (`as_strided`,
`index_elementwise_get`) is left out, and so are tensor arrays, sparse and string tensors, which a
sample cannot describe, and optimizers, which belong to no graph.

A name stands here once: its in-place form (`relu_`) and its gradient (`relu_grad`) are listed in
`IN_PLACE` and `GRADIENTS` where paddle has them.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


ELEMENTWISE = """
    abs acos acosh add add_n addmm angle asin asinh assign atan atan2 atanh baddbmm bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cast ceil clip
    clip_by_norm complex conj copysign cos cosh digamma divide elementwise_pow equal erf erfinv
    exp expm1 floor floor_divide fmax fmin gammaincc gammaln greater_equal greater_than heaviside
    i0 i0e i1 i1e imag increment isclose isfinite isinf isnan lerp less_equal less_than lgamma log
    log10 log1p log2 logical_and logical_not logical_or logical_xor logit maximum minimum multiply
    nextafter not_equal polygamma pow real reciprocal remainder rint round rsqrt scale sign sin
    sinh sqrt square subtract tan tanh trunc trunc_divide where
"""
ACTIVATIONS = """
    celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid
    maxout mish prelu relu relu6 selu sigmoid silu softmax softplus softshrink softsign stanh
    swiglu swish tanh_shrink thresholded_relu
"""
REDUCTIONS = """
    all allclose amax amin any argmax argmin argsort bincount cummax cummin cumprod cumsum dist
    equal_all frobenius_norm histogram int_bincount is_empty kthvalue l1_norm logcumsumexp
    logsumexp max max_with_index mean mean_all median min min_with_index mode nanmedian nansum
    norm numel p_norm prod reduce_as renorm searchsorted squared_l2_norm std sum topk unique
    unique_consecutive var variance
"""
LINEAR_ALGEBRA = """
    batched_gemm bilinear bmm cholesky cholesky_solve cross det diag diag_embed diagonal dot eig
    eigh eigvals eigvalsh einsum fft_c2c fft_c2r fft_r2c gemm_epilogue inverse kron linear
    linear_v2 lstsq lu lu_solve lu_unpack matmul matmul_with_flatten matrix_power matrix_rank
    matrix_rank_atol_rtol matrix_rank_tol multi_dot mv qr slogdet slogdet_v2 solve spectral_norm
    stft svd svdvals trace triangular_solve
"""
LAYOUT = """
    as_complex as_real broadcast_tensors channel_shuffle concat crop expand expand_as
    fill_diagonal fill_diagonal_tensor flatten flip fold frame gather gather_nd gather_tree
    index_add index_put index_sample index_select masked_fill masked_select meshgrid multiplex
    nonzero one_hot overlap_add pad pad3d partial_concat partial_sum pixel_shuffle pixel_unshuffle
    put_along_axis repeat_interleave repeat_interleave_with_tensor_index reshape reverse roll
    scatter scatter_nd_add sequence_mask set_value set_value_with_tensor shape shape64 shard_index
    shuffle_channel slice split split_with_num squeeze stack strided_slice take_along_axis
    temporal_shift tensor_unfold tile trans_layout transpose tril triu unbind unfold unsqueeze
    unstack view_dtype view_shape view_slice
"""
CREATION = """
    arange assign_value empty empty_like eye fill full full_batch_size_like full_int_array
    full_like full_with_tensor linspace logspace ones ones_like range_v2 tril_indices triu_indices
    zeros zeros_like
"""
RANDOM = """
    bernoulli binomial class_center_sample dirichlet dropout exponential gaussian gaussian_inplace
    gumbel_softmax multinomial poisson randint random randperm rrelu shuffle_batch standard_gamma
    top_p_sampling truncated_gaussian_random uniform uniform_inplace
"""
LAYERS = """
    add_group_norm_silu add_position_encoding affine_channel affine_grid batch_norm bicubic_interp
    bilinear_interp conv2d conv2d_transpose conv2d_transpose_bias conv3d conv3d_transpose
    correlation deformable_conv depthwise_conv2d depthwise_conv2d_bias depthwise_conv2d_transpose
    depthwise_conv3d_bias embedding embedding_with_scaled_gradient fast_ln fast_rms_norm
    fractional_max_pool2d fractional_max_pool3d grid_sample group_norm gru gru_unit im2sequence
    instance_norm interp_antialias label_smooth layer_norm linear_interp lp_pool2d lstm
    max_pool2d_with_index max_pool3d_with_index nearest_interp pool2d pool3d rms_norm rnn
    segment_pool send_u_recv send_ue_recv send_uv sync_batch_norm trilinear_interp unpool unpool3d
"""
ATTENTION = """
    calc_reduced_attn_scores flash_attn flash_attn_qkvpacked flash_attn_unpadded flash_attn_v3
    flash_attn_v3_varlen flash_attn_varlen_qkvpacked flashmask_attention flashmask_attention_v2
    memory_efficient_attention variable_length_memory_efficient_attention
"""
FUSED = """
    fused_act_dequant fused_batch_norm_act fused_bias_act fused_bias_dropout_residual_layer_norm
    fused_bias_residual_layernorm fused_bn_add_activation fused_dot_product_attention
    fused_dropout_add fused_elementwise_add fused_elementwise_div fused_elementwise_mul
    fused_elementwise_sub fused_gemm_epilogue fused_partial_rope fused_rms_norm_ext
    fused_rotary_position_embedding fused_softmax_mask fused_softmax_mask_upper_triangle
"""
DETECTION = """
    bipartite_match box_clip box_coder collect_fpn_proposals distribute_fpn_proposals
    generate_proposals matrix_nms multiclass_nms3 nms prior_box psroi_pool roi_align roi_pool
    yolo_box yolo_box_head
"""
LOSSES = """
    accuracy bce_loss crf_decoding cross_entropy_with_softmax ctc_align edit_distance hinge_loss
    hsigmoid_loss huber_loss identity_loss kldiv_loss log_loss margin_cross_entropy nll_loss
    sigmoid_cross_entropy_with_logits viterbi_decode warpctc warprnnt yolo_loss
"""
QUANTIZATION = """
    apply_per_channel_scale dequantize_abs_max dequantize_linear dequantize_log
    fake_channel_wise_dequantize_max_abs fake_channel_wise_quantize_abs_max
    fake_channel_wise_quantize_dequantize_abs_max fake_dequantize_max_abs fake_quantize_abs_max
    fake_quantize_dequantize_abs_max llm_int8_linear quantize_linear weight_dequantize
    weight_only_linear weight_quantize
"""
MIXTURE_OF_EXPERTS = """
    cal_aux_loss moe_combine moe_combine_no_weight moe_gate_dispatch moe_gate_dispatch_permute
    moe_permute moe_unpermute number_count
"""
PLACEMENT = "copy_to memcpy_d2h memcpy_h2d npu_identity"

_OUT_OF_PLACE = " ".join(
    (
        ELEMENTWISE, ACTIVATIONS, REDUCTIONS, LINEAR_ALGEBRA, LAYOUT, CREATION, RANDOM, LAYERS,
        ATTENTION, FUSED, DETECTION, LOSSES, QUANTIZATION, MIXTURE_OF_EXPERTS, PLACEMENT,
    )
).split()  # fmt: skip

IN_PLACE = words(
    """
    abs acos acosh add addmm affine_channel asin asinh assign assign_out assign_value atan atanh
    baddbmm batch_norm bce_loss bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor cast ceil clip copysign cos cosh cross_entropy_with_softmax
    cumprod cumsum digamma divide dropout elu equal erf erfinv exp expm1 exponential fill
    fill_diagonal fill_diagonal_tensor flatten floor floor_divide full gammaincc gammaln
    gaussian_inplace greater_equal greater_than hardtanh i0 identity_loss increment index_add
    index_put l1_norm leaky_relu lerp less_equal less_than lgamma log log10 log1p log2 logical_and
    logical_not logical_or logical_xor logit lu masked_fill multiply not_equal polygamma pow
    put_along_axis random reciprocal relu remainder renorm reshape rint round rsqrt scale scatter
    set_value set_value_with_tensor sigmoid sigmoid_cross_entropy_with_logits silu sin sinh
    softmax sqrt square squeeze subtract sync_batch_norm tan tanh thresholded_relu transpose tril
    triu trunc trunc_divide uniform_inplace unsqueeze where
    """
)
"""Operators with a form that writes into its first argument, named with a final underscore."""

WITHOUT_PLAIN_FORM = frozenset({"assign_out", "exponential", "sync_batch_norm"})
"""Operators that paddle has in their in-place form alone."""

GRADIENTS = words(
    """
    abs acos acosh add addmm affine_channel affine_grid amax amin angle argsort as_complex as_real
    asin asinh assign atan atan2 atanh baddbmm batch_norm bce_loss bicubic_interp bilinear
    bilinear_interp bmm broadcast_tensors cast ceil celu channel_shuffle cholesky cholesky_solve
    clip complex concat conj conv2d conv2d_transpose conv3d conv3d_transpose copysign correlation
    cos cosh crop cross cross_entropy_with_softmax cummax cummin cumprod cumsum deformable_conv
    depthwise_conv2d depthwise_conv2d_transpose det diag diagonal digamma dist divide dot dropout
    eig eigh eigvalsh einsum elementwise_pow elu embedding erf erfinv exp expand expand_as expm1
    fft_c2c fft_c2r fft_r2c fill fill_diagonal fill_diagonal_tensor flash_attn flatten flip floor
    fmax fmin fold frame frobenius_norm fused_softmax_mask fused_softmax_mask_upper_triangle
    gammaincc gammaln gather gather_nd gelu grid_sample group_norm hardshrink hardsigmoid
    hardswish hardtanh heaviside hinge_loss huber_loss i0 i0e i1 i1e imag index_add index_put
    index_sample index_select instance_norm inverse kldiv_loss kron kthvalue l1_norm label_smooth
    layer_norm leaky_relu lerp lgamma linear_interp log log10 log1p log2 log_loss log_softmax
    logcumsumexp logit logsigmoid logsumexp lp_pool2d lu masked_fill masked_select matmul
    matmul_with_flatten matrix_power max max_pool2d_with_index max_pool3d_with_index
    max_with_index maximum maxout mean mean_all median meshgrid min min_with_index minimum mish
    mode multi_dot multiplex mv nanmedian nansum nearest_interp nll_loss norm overlap_add p_norm
    pad pad3d pixel_shuffle pixel_unshuffle polygamma pool2d pool3d pow prelu prod put_along_axis
    qr real reciprocal reduce_as relu relu6 remainder renorm repeat_interleave
    repeat_interleave_with_tensor_index reshape reverse rint rms_norm rnn roi_align roi_pool roll
    round rrelu rsqrt scatter scatter_nd_add segment_pool selu send_u_recv set_value
    set_value_with_tensor sigmoid sigmoid_cross_entropy_with_logits sign silu sin sinh slice
    slogdet softmax softplus softshrink softsign solve spectral_norm split split_with_num sqrt
    square squared_l2_norm squeeze stack stanh std stft strided_slice subtract sum svd svdvals
    swiglu swish take_along_axis tan tanh tanh_shrink temporal_shift tensor_unfold
    thresholded_relu tile topk trace transpose triangular_solve tril trilinear_interp triu trunc
    unbind unfold unpool unpool3d unsqueeze unstack var view_dtype view_shape warpctc where
    yolo_loss
    """
)
"""Operators whose gradient, named with `_grad`, is an operator of its own."""

FUNCTION_NAMES = frozenset(
    {name for name in _OUT_OF_PLACE if name not in WITHOUT_PLAIN_FORM}
    | {f"{name}_" for name in IN_PLACE}
    | {f"{name}_grad" for name in GRADIENTS}
)
"""Names under `paddle._C_ops` that a sample may call."""

RANDOM_NAMES = frozenset(
    {
        *RANDOM.split(), *(f"{name}_" for name in RANDOM.split() if name in IN_PLACE),
        "flash_attn", "flash_attn_qkvpacked", "flash_attn_unpadded", "flash_attn_v3",
        "flash_attn_varlen_qkvpacked", "fused_bias_dropout_residual_layer_norm",
        "fused_dot_product_attention", "fused_dropout_add", "memory_efficient_attention", "rnn",
    }
)  # fmt: skip
"""Operators that may draw random numbers (dropout inside attention and rnn included)."""
