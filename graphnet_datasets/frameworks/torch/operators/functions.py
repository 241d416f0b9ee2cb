"""Functions of torch that a sample may call: the reviewed list, as names, without importing torch.

A name stands here after somebody has looked at what it does: it computes on tensors (or on symbolic
sizes) and neither reads nor writes files, processes, memory addresses or the settings of the
process. What torch has beside these (loading, saving, threads, default dtypes, seeds, storages,
packed weights that hold addresses, compiler entry points) is left out on purpose.
"""

from __future__ import annotations

from .words import words

TORCH = words(
    """
    abs abs_ absolute acos acos_ acosh acosh_ adaptive_avg_pool1d _adaptive_avg_pool2d
    _adaptive_avg_pool3d adaptive_max_pool1d add _add_relu _add_relu_ addbmm addcdiv addcmul
    addmm _addmm_activation addmv addmv_ addr adjoint affine_grid_generator alias_copy all
    allclose alpha_dropout alpha_dropout_ amax amin _aminmax aminmax angle any arange arccos
    arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan_ arctan2 arctanh
    arctanh_ argmax argmin argsort argwhere as_strided as_strided_ as_strided_copy
    as_strided_scatter as_tensor asin asin_ asinh asinh_ _assert _assert_async _assert_scalar
    _assert_tensor_metadata atan atan_ atan2 atanh atanh_ atleast_1d atleast_2d atleast_3d
    avg_pool1d baddbmm bartlett_window batch_norm batch_norm_backward_elemt
    batch_norm_backward_reduce batch_norm_elemt _batch_norm_impl_index batch_norm_stats
    bernoulli bilinear binary_cross_entropy_with_logits bincount binomial bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window
    block_diag bmm broadcast_shapes broadcast_tensors broadcast_to bucketize cartesian_prod
    _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short
    cat cdist ceil ceil_ celu celu_ chain_matmul channel_shuffle _check _check_index
    _check_is_size _check_tensor_all _check_type _check_value cholesky cholesky_inverse
    cholesky_solve chunk _chunk_cat clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip
    clip_ clone column_stack combinations complex _compute_linear_combination concat concatenate
    _conj conj _conj_copy _conj_physical conj_physical conj_physical_ constant_pad_nd
    _constrain_as_size conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d _convolution convolution _convolution_mode copysign corrcoef cos cos_ cosh
    cosh_ cosine_embedding_loss cosine_similarity count_nonzero cov cross _ctc_loss ctc_loss
    cummax cummin cumprod cumsum cumulative_trapezoid deg2rad deg2rad_ dequantize det detach
    detach_ detach_copy diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff
    digamma _dim_arange _dirichlet_grad dist div divide dot dropout dropout_ dsmm dsplit dstack
    einsum embedding _embedding_bag embedding_bag _embedding_bag_forward_only embedding_renorm_
    empty empty_like empty_permuted empty_strided eq equal erf erf_ erfc erfc_ erfinv
    _euclidean_dist exp exp_ exp2 exp2_ expand_copy expm1 expm1_ eye
    _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine
    fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams feature_alpha_dropout
    feature_alpha_dropout_ feature_dropout feature_dropout_ _fft_c2c _fft_c2r _fft_r2c fill
    fill_ fix fix_ flatten flip fliplr flipud float_power floor floor_ floor_divide fmax fmin
    fmod frac frac_ frexp frobenius_norm full full_like _functional_assert_async
    _functional_assert_scalar _functional_sym_constrain_range
    _functional_sym_constrain_range_for_size _fused_dropout _fused_rms_norm gather gcd gcd_ ge
    geqrf ger get_device gradient greater greater_equal grid_sampler grid_sampler_2d
    grid_sampler_3d group_norm _grouped_mm gru gru_cell gt hamming_window hann_window hardshrink
    hash_tensor heaviside hinge_embedding_loss histc histogram histogramdd
    _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors hsplit
    hstack hypot i0 i0_ igamma igammac imag index_add index_copy index_fill index_put index_put_
    index_reduce index_select inner instance_norm _int_mm int_repr inverse _is_all_true
    _is_any_true is_complex is_conj is_floating_point is_neg is_nonzero is_same_size is_signed
    is_tensor isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window
    kl_div kron kthvalue layer_norm lcm lcm_ ldexp ldexp_ le lerp less less_equal lgamma
    _linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd linspace lobpcg log
    log_ log10 log10_ log1p log1p_ log2 log2_ _log_softmax log_softmax
    _log_softmax_backward_data logaddexp logaddexp2 _logcumsumexp logcumsumexp logdet
    logical_and logical_not logical_or logical_xor logit logit_ logspace logsumexp lstm
    lstm_cell lt lu lu_unpack _lu_with_info margin_ranking_loss masked_fill _masked_scale
    masked_scatter masked_select _masked_softmax matmul matrix_exp matrix_power max max_pool1d
    max_pool1d_with_indices max_pool2d max_pool3d maximum mean median meshgrid min minimum mm
    mode moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num nan_to_num_
    nanmean nanmedian nanquantile nansum narrow narrow_copy native_batch_norm
    _native_batch_norm_legit _native_batch_norm_legit_no_training native_channel_shuffle
    native_dropout native_group_norm native_layer_norm _native_multi_head_attention native_norm
    ne neg neg_ _neg_view _neg_view_copy negative negative_ nextafter nonzero nonzero_static
    norm norm_except_dim normal not_equal nuclear_norm numel ones ones_like orgqr ormqr outer
    _pack_padded_sequence _pad_packed_sequence pairwise_distance pca_lowrank pdist permute
    permute_copy pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma
    positive pow prelu _prelu_kernel prod promote_types put q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr quantile
    quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic rad2deg rad2deg_ rand
    rand_like randint randint_like randn randn_like randperm range ravel real reciprocal
    reciprocal_ relu relu_ remainder renorm repeat_interleave reshape resolve_conj resolve_neg
    result_type rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round round_
    row_stack rrelu rrelu_ rsqrt rsqrt_ rsub saddmm _safe_softmax _sample_dirichlet
    _saturate_weight_to_fp16 scalar_tensor _scaled_dot_product_attention_math
    _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_grouped_mm _scaled_mm scatter scatter_add scatter_reduce searchsorted segment_reduce
    select select_copy select_scatter selu selu_ sgn _shape_as_tensor sigmoid sigmoid_ sign
    signbit sin sin_ sinc sinc_ sinh sinh_ slice_copy slice_scatter slogdet smm _softmax softmax
    _softmax_backward_data sort _sparse_softmax_backward_data _sparse_sum split split_copy
    split_with_sizes split_with_sizes_copy spmm sqrt sqrt_ square square_ squeeze squeeze_copy
    sspaddmm _stack stack _standard_gamma _standard_gamma_grad std std_mean stft sub subtract
    sum svd svd_lowrank swapaxes swapdims _sym_acos _sym_asin _sym_atan sym_constrain_range
    sym_constrain_range_for_size _sym_cos _sym_cosh sym_float sym_int sym_ite _sym_log2 sym_max
    sym_min sym_not _sym_sin _sym_sinh _sym_sqrt sym_sqrt sym_sum _sym_tan _sym_tanh t t_copy
    take take_along_dim tan tan_ tanh tanh_ tensor tensor_split tensordot threshold threshold_
    tile topk trace _transformer_encoder_layer_fwd transpose transpose_copy trapezoid trapz
    triangular_solve tril tril_indices _trilinear triplet_margin_loss triu triu_indices
    true_divide trunc trunc_ unbind unbind_copy unflatten unfold_copy _unique unique _unique2
    unique_consecutive unravel_index unsafe_chunk _unsafe_index _unsafe_index_put
    _unsafe_masked_index _unsafe_masked_index_put_accumulate unsafe_split
    unsafe_split_with_sizes unsqueeze unsqueeze_copy vander var var_mean vdot view_as_complex
    view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit vstack
    _weight_int8pack_mm _weight_norm _weight_norm_interface where xlogy xlogy_ zero_ zeros
    zeros_like
    """
)
"""`torch.X`. A name that the installed torch lacks fails only when it is used."""

NN_FUNCTIONAL = words(
    """
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices
    adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
    adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool2d avg_pool3d batch_norm
    binary_cross_entropy binary_cross_entropy_with_logits celu cosine_embedding_loss
    cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_ embedding
    embedding_bag feature_alpha_dropout fold fractional_max_pool2d
    fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
    gaussian_nll_loss gelu glu grid_sample group_norm grouped_mm gumbel_softmax hardsigmoid
    hardswish hardtanh hardtanh_ hinge_embedding_loss huber_loss instance_norm interpolate
    kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear linear_cross_entropy
    local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss
    max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss
    multi_head_attention_forward multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nll_loss normalize one_hot pad poisson_nll_loss relu relu6
    rms_norm rrelu scaled_dot_product_attention scaled_grouped_mm scaled_mm selu sigmoid silu
    smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink
    threshold triplet_margin_loss triplet_margin_with_distance_loss unfold upsample
    upsample_bilinear upsample_nearest
    """
)
"""`torch.nn.functional.X`, without those that are the same function as `torch.X`."""

NN_FUNCTIONAL_IS_TORCH = words(
    """
    adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink
    native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_
    rrelu_ selu_ threshold_
    """
)
"""`torch.nn.functional.X` that are the very function `torch.X`."""

C_NN = words(
    """
    adaptive_max_pool2d adaptive_max_pool3d binary_cross_entropy col2im _conv_depthwise2d
    conv_depthwise3d cross_entropy_loss elu fractional_max_pool2d fractional_max_pool3d gelu_
    hardsigmoid_ hardswish_ huber_loss im2col l1_loss max_pool2d_with_indices
    max_pool3d_with_indices max_unpool2d max_unpool3d mish_ mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd _pad_circular _pad_enum pad_sequence
    reflection_pad1d reflection_pad2d reflection_pad3d relu6_ replication_pad1d
    replication_pad2d replication_pad3d rrelu_with_noise rrelu_with_noise_ silu_ slow_conv3d
    slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d
    smooth_l1_loss soft_margin_loss thnn_conv2d upsample_bicubic2d _upsample_bicubic2d_aa
    upsample_bilinear2d _upsample_bilinear2d_aa _upsample_lanczos2d_aa upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_trilinear3d
    """
)
"""`torch._C._nn.X` whose signature differs from that of any public function."""

C_NN_IS_FUNCTIONAL = words(
    """
    adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d elu_ gelu glu hardsigmoid
    hardswish hardtanh hardtanh_ leaky_relu leaky_relu_ linear mish one_hot pad relu6
    scaled_dot_product_attention silu softplus softshrink
    """
)
"""`torch._C._nn.X` whose calls mean the same as those of `torch.nn.functional.X`."""

LINALG = words(
    """
    cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product
    inv inv_ex ldl_factor ldl_factor_ex lstsq lu lu_factor lu_factor_ex matmul matrix_exp
    matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_ex
    solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm
    """
)
"""`torch.linalg.X`."""

FFT = words(
    """
    fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2
    ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
    """
)
"""`torch.fft.X`."""

SPECIAL = words(
    """
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t
    chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc
    erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h
    hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p
    log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
    modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
    sinc softmax spherical_bessel_j0 xlog1py xlogy zeta
    """
)
"""`torch.special.X`."""

SPARSE = words("addmm log_softmax mm sampled_addmm softmax spsolve sum")
"""`torch.sparse.X`."""
