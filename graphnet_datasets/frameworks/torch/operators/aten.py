"""ATen and prims operators that a sample may call: the reviewed list of packets, as names.

An overload (`add.Tensor`) is accepted when its packet (`add`) stands here. Left out on purpose:
packets that alias memory without a bounds check (`_reshape_alias`, `set_`, `_index_put_impl_`),
pack weights into opaque objects, resize storages, read files, print, or belong to one vendor.
"""

from __future__ import annotations

from .words import words

ATEN = words(
    """
    abs abs_ absolute absolute_ acos acos_ acosh acosh_ adaptive_avg_pool1d _adaptive_avg_pool2d
    adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d adaptive_avg_pool3d
    _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add add_ _add_relu _add_relu_ addbmm addbmm_ addcdiv
    addcdiv_ addcmul addcmul_ addmm addmm_ _addmm_activation addmv addmv_ addr addr_ adjoint
    affine_grid_generator affine_grid_generator_backward alias alias_copy all allclose
    alpha_dropout alpha_dropout_ amax amin _aminmax aminmax __and__ angle any arange arccos
    arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan_ arctan2 arctan2_
    arctanh arctanh_ argmax argmin argsort argwhere as_strided as_strided_ as_strided_copy
    as_strided_scatter asin asin_ asinh asinh_ _assert_async _assert_scalar
    _assert_tensor_metadata atan atan_ atan2 atan2_ atanh atanh_ atleast_1d atleast_2d
    atleast_3d avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward baddbmm
    baddbmm_ bartlett_window batch_norm batch_norm_backward batch_norm_backward_elemt
    batch_norm_backward_reduce batch_norm_elemt _batch_norm_impl_index
    _batch_norm_impl_index_backward _batch_norm_no_update batch_norm_stats bernoulli bernoulli_
    bilinear binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
    bincount binomial bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_
    bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_
    bitwise_xor bitwise_xor_ blackman_window block_diag bmm broadcast_tensors broadcast_to
    bucketize cartesian_prod _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int
    _cast_Long _cast_Short cat cauchy cauchy_ cdist _cdist_backward _cdist_forward ceil ceil_
    celu celu_ chain_matmul chalf channel_shuffle cholesky cholesky_inverse cholesky_solve
    _cholesky_solve_helper chunk _chunk_cat clamp clamp_ clamp_max clamp_max_ clamp_min
    clamp_min_ clip clip_ clone col2im column_stack combinations complex
    _compute_linear_combination concat concatenate _conj conj _conj_copy _conj_physical
    conj_physical conj_physical_ constant_pad_nd contiguous conv1d conv2d conv3d
    _conv_depthwise2d conv_depthwise3d conv_tbc conv_tbc_backward conv_transpose1d
    conv_transpose2d conv_transpose3d _convolution convolution convolution_backward
    _convolution_double_backward _convolution_mode copy copy_ copysign copysign_ corrcoef cos
    cos_ cosh cosh_ cosine_embedding_loss cosine_similarity count_nonzero cov cross
    cross_entropy_loss _ctc_loss ctc_loss cudnn_affine_grid_generator
    cudnn_affine_grid_generator_backward cudnn_batch_norm cudnn_batch_norm_backward
    cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
    cudnn_convolution_transpose cudnn_grid_sampler cudnn_grid_sampler_backward cummax
    cummaxmin_backward cummin cumprod cumprod_ cumprod_backward cumsum cumsum_
    cumulative_trapezoid deg2rad deg2rad_ dense_dim dequantize det detach detach_ detach_copy
    diag diag_embed diagflat diagonal diagonal_backward diagonal_copy diagonal_scatter diff
    digamma digamma_ dim _dimI _dimV _dim_arange _dirichlet_grad dist div div_ divide divide_
    dot dropout dropout_ dsplit dstack _efficient_attention_backward
    _efficient_attention_forward einsum elu elu_ elu_backward embedding _embedding_bag
    embedding_bag _embedding_bag_forward_only embedding_renorm embedding_renorm_ empty
    empty_like empty_permuted empty_strided eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_
    _euclidean_dist exp exp_ exp2 exp2_ expand expand_as expand_copy expm1 expm1_ exponential
    exponential_ eye _fake_quantize_learnable_per_channel_affine
    _fake_quantize_learnable_per_channel_affine_backward
    _fake_quantize_learnable_per_tensor_affine
    _fake_quantize_learnable_per_tensor_affine_backward fake_quantize_per_channel_affine
    fake_quantize_per_channel_affine_cachemask
    fake_quantize_per_channel_affine_cachemask_backward fake_quantize_per_tensor_affine
    fake_quantize_per_tensor_affine_cachemask fake_quantize_per_tensor_affine_cachemask_backward
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams feature_alpha_dropout
    feature_alpha_dropout_ feature_dropout feature_dropout_ _fft_c2c _fft_c2r fft_fft fft_fft2
    fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
    fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn _fft_r2c
    fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn fill fill_ fill_diagonal_ fix fix_
    _flash_attention_backward _flash_attention_forward flatten flip fliplr flipud float_power
    float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_
    fractional_max_pool2d fractional_max_pool3d frexp frobenius_norm full full_like
    _functional_assert_async _functional_assert_scalar _functional_sym_constrain_range
    _functional_sym_constrain_range_for_size _fused_adagrad _fused_adagrad_ _fused_adam
    _fused_adam_ _fused_adamw _fused_adamw_ _fused_dropout _fused_rms_norm
    _fused_rms_norm_backward _fused_sgd _fused_sgd_ gather gather_backward gcd gcd_ ge ge_ gelu
    gelu_ gelu_backward geometric geometric_ geqrf ger get_device glu glu_backward
    glu_backward_jvp glu_jvp gradient greater greater_ greater_equal greater_equal_ grid_sampler
    grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward group_norm
    _grouped_mm gru gru_cell gt gt_ hamming_window hann_window hardshrink hardshrink_backward
    hardsigmoid hardsigmoid_ hardsigmoid_backward hardswish hardswish_ hardswish_backward
    hardtanh hardtanh_ hardtanh_backward hash_tensor heaviside heaviside_ hinge_embedding_loss
    histc histogram histogramdd _histogramdd_bin_edges _histogramdd_from_bin_cts
    _histogramdd_from_bin_tensors hsplit hstack huber_loss huber_loss_backward hypot hypot_ i0
    i0_ __iand__ igamma igamma_ igammac igammac_ __ilshift__ im2col imag index index_add
    index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce
    index_reduce_ index_select index_select_backward infinitely_differentiable_gelu_backward
    inner instance_norm _int_mm int_repr inverse __ior__ __irshift__ _is_all_true _is_any_true
    is_complex is_conj is_contiguous is_floating_point is_neg is_nonzero is_same_size is_signed
    _is_zerotensor isclose isfinite isin isinf isnan isneginf isposinf isreal istft item
    __ixor__ _jagged_to_padded_dense_forward kaiser_window kl_div kron kthvalue l1_loss
    layer_norm lcm lcm_ ldexp ldexp_ le le_ leaky_relu leaky_relu_ leaky_relu_backward lerp
    lerp_ less less_ less_equal less_equal_ lgamma lgamma_ lift_fresh lift_fresh_copy
    linalg__powsum linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cross _linalg_det
    linalg_det linalg_diagonal linalg_eig _linalg_eigh linalg_eigh _linalg_eigvals
    linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex
    linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor
    linalg_lu_factor_ex linalg_matmul linalg_matrix_exp linalg_matrix_norm linalg_matrix_power
    linalg_matrix_rank linalg_multi_dot linalg_norm linalg_pinv linalg_qr _linalg_slogdet
    linalg_slogdet linalg_solve _linalg_solve_ex linalg_solve_ex linalg_solve_triangular
    _linalg_svd linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander
    linalg_vecdot linalg_vector_norm linear linear_backward linspace _local_scalar_dense log
    log_ log10 log10_ log1p log1p_ log2 log2_ log_normal log_normal_ log_sigmoid
    log_sigmoid_backward log_sigmoid_forward _log_softmax log_softmax _log_softmax_backward_data
    logaddexp logaddexp2 _logcumsumexp logcumsumexp logdet logical_and logical_and_ logical_not
    logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit logit_ logit_backward
    logspace logsumexp __lshift__ lstm lstm_cell lt lt_ lu_unpack _lu_with_info mH mT
    margin_ranking_loss masked_fill masked_fill_ _masked_scale masked_scatter masked_scatter_
    masked_scatter_backward masked_select masked_select_backward _masked_softmax
    _masked_softmax_backward matmul matmul_backward matrix_H matrix_exp matrix_exp_backward
    matrix_power max max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices
    max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d maximum mean median meshgrid
    min minimum mish mish_ mish_backward mm mode moveaxis movedim mse_loss mse_loss_backward
    msort mul mul_ multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward
    multinomial multiply multiply_ mv mvlgamma mvlgamma_ nan_to_num nan_to_num_ nanmean
    nanmedian nanquantile nansum narrow narrow_copy native_batch_norm native_batch_norm_backward
    _native_batch_norm_legit _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training native_channel_shuffle native_dropout
    native_dropout_backward native_group_norm native_group_norm_backward native_layer_norm
    native_layer_norm_backward _native_multi_head_attention native_norm ne ne_ neg neg_
    _neg_view _neg_view_copy negative negative_ new_empty new_empty_strided new_full new_ones
    new_zeros nextafter nextafter_ nll_loss nll_loss2d nll_loss2d_forward nll_loss_forward
    nll_loss_nd _nnz nonzero nonzero_static norm norm_except_dim normal normal_
    normal_functional not_equal not_equal_ nuclear_norm numel numpy_T one_hot ones ones_like __or__
    orgqr ormqr outer _pack_padded_sequence _pack_padded_sequence_backward pad _pad_circular
    _pad_enum _pad_packed_sequence pad_sequence _padded_dense_to_jagged_forward
    pairwise_distance pdist _pdist_backward _pdist_forward permute permute_copy pinverse
    pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma polygamma_ positive
    pow pow_ prelu _prelu_kernel _prelu_kernel_backward prod promote_types put put_
    q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr
    quantile quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic rad2deg
    rad2deg_ rand rand_like randint randint_like randn randn_like random random_ randperm range
    ravel real reciprocal reciprocal_ reflection_pad1d reflection_pad1d_backward
    reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward relu
    relu_ relu6 relu6_ remainder remainder_ renorm renorm_ repeat repeat_interleave
    replication_pad1d replication_pad1d_backward replication_pad2d replication_pad2d_backward
    replication_pad3d replication_pad3d_backward reshape reshape_as resolve_conj resolve_neg
    result_type rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round round_
    row_stack rrelu rrelu_ rrelu_with_noise rrelu_with_noise_ rrelu_with_noise_backward
    rrelu_with_noise_functional __rshift__ rsqrt rsqrt_ rsub _safe_softmax _sample_dirichlet
    _saturate_weight_to_fp16 scalar_tensor scaled_dot_product_attention
    _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
    _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_efficient_attention
    _scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward _scaled_grouped_mm
    _scaled_grouped_mm_v2 _scaled_mm _scaled_mm_v2 scatter scatter_ scatter_add scatter_add_
    scatter_reduce scatter_reduce_ searchsorted segment_reduce select select_backward
    select_copy select_scatter selu selu_ sgn sgn_ _shape_as_tensor sigmoid sigmoid_
    sigmoid_backward sign sign_ signbit silu silu_ silu_backward sin sin_ sinc sinc_ sinh sinh_
    size slice slice_backward slice_copy slice_scatter slogdet _slow_conv2d_backward
    _slow_conv2d_forward slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d
    slow_conv_transpose2d slow_conv_transpose3d smm smooth_l1_loss smooth_l1_loss_backward
    soft_margin_loss soft_margin_loss_backward _softmax softmax _softmax_backward_data softplus
    softplus_backward softshrink softshrink_backward sort _sparse_addmm sparse_dim
    _sparse_log_softmax _sparse_log_softmax_backward_data _sparse_mm _sparse_mm_reduce_impl
    _sparse_mm_reduce_impl_backward sparse_sampled_addmm _sparse_softmax
    _sparse_softmax_backward_data _sparse_sparse_matmul _sparse_sum _sparse_sum_backward
    special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_digamma special_entr special_erf special_erfc
    special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammainc
    special_gammaincc special_gammaln special_hermite_polynomial_h special_hermite_polynomial_he
    special_i0 special_i0e special_i1 special_i1e special_laguerre_polynomial_l
    special_legendre_polynomial_p special_log1p special_log_ndtr special_log_softmax
    special_logit special_logsumexp special_modified_bessel_i0 special_modified_bessel_i1
    special_modified_bessel_k0 special_modified_bessel_k1 special_multigammaln special_ndtr
    special_ndtri special_polygamma special_psi special_round special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w special_sinc special_softmax
    special_spherical_bessel_j0 special_xlog1py special_xlogy special_zeta split split_copy
    split_with_sizes split_with_sizes_copy _spsolve sqrt sqrt_ square square_ squeeze squeeze_
    squeeze_copy sspaddmm _stack stack _standard_gamma _standard_gamma_grad std std_mean stft
    storage_offset stride sub sub_ subtract subtract_ sum sum_to_size svd swapaxes swapaxes_
    swapdims swapdims_ sym_constrain_range sym_constrain_range_for_size sym_is_contiguous
    sym_numel sym_size sym_storage_offset sym_stride t t_ t_copy take take_along_dim tan tan_
    tanh tanh_ tanh_backward tensor_split tensordot thnn_conv2d
    _thnn_differentiable_gru_cell_backward _thnn_differentiable_lstm_cell_backward
    _thnn_fused_gru_cell _thnn_fused_lstm_cell threshold threshold_ threshold_backward tile to
    _to_copy _to_dense to_dense to_dense_backward topk trace trace_backward
    _transformer_encoder_layer_fwd transpose transpose_ transpose_copy trapezoid trapz
    triangular_solve tril tril_ tril_indices _trilinear triplet_margin_loss triu triu_
    triu_indices true_divide true_divide_ trunc trunc_ type_as unbind unbind_copy unflatten
    unfold unfold_copy uniform uniform_ _unique _unique2 unique_consecutive unique_dim
    unique_dim_consecutive unsafe_chunk _unsafe_index _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate unsafe_split unsafe_split_with_sizes _unsafe_view
    unsqueeze unsqueeze_ unsqueeze_copy upsample_bicubic2d _upsample_bicubic2d_aa
    _upsample_bicubic2d_aa_backward upsample_bicubic2d_backward upsample_bilinear2d
    _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward upsample_bilinear2d_backward
    _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward upsample_linear1d
    upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward upsample_nearest2d
    upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward
    _upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest_exact2d
    _upsample_nearest_exact2d_backward _upsample_nearest_exact3d
    _upsample_nearest_exact3d_backward upsample_trilinear3d upsample_trilinear3d_backward
    value_selecting_reduction_backward vander var var_mean vdot view view_as view_as_complex
    view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit vstack
    _weight_int8pack_mm _weight_norm _weight_norm_differentiable_backward _weight_norm_interface
    _weight_norm_interface_backward where xlogy xlogy_ __xor__ zero zero_ zeros zeros_like
    """
)

FOREACH = words(
    """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone copy cos cosh div erf
    erfc exp expm1 floor frac lerp lgamma log log10 log1p log2 max maximum minimum mm mul neg
    norm pow powsum reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc zero
    """
)
"""`_foreach_X` and, where it has one, its in-place form `_foreach_X_`."""

PRIMS = words(
    """
    abs acos acosh add amax amin asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1
    bessel_i1e bessel_j0 bessel_j1 bitwise_and bitwise_not bitwise_or bitwise_xor
    broadcast_in_dim cat cbrt ceil clone collapse collapse_view conj conj_physical
    convert_element_type cos cosh device_put digamma div empty empty_permuted empty_strided eq
    erf erf_inv erfc erfcx exp exp2 expm1 fft_c2c fft_c2r fft_r2c fill floor fmax fmin fmod
    frexp full full_like gcd ge gt hypot igamma igammac imag iota isfinite item le lgamma log
    log10 log1p log2 lt maximum maximum_value minimum minimum_value mul ndtri ne neg nextafter
    normal pow prod real reciprocal remainder reshape rev round rsqrt scalar_tensor shift_left
    shift_right_arithmetic sign signbit sin sinh spherical_bessel_j0 split_dim sqrt squeeze sub
    sum svd tan tanh transpose trunc uniform var view_of view_of_dtype where xor_sum zeta
    """
)
"""`torch.ops.prims.X`."""

FOREACH_OUT_OF_PLACE = words("clone max mm norm powsum")
"""`_foreach_X` that have no in-place form."""
