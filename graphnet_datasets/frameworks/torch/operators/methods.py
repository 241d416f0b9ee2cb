"""Methods and attributes of tensors that a sample may use: the reviewed list, as names.

Left out on purpose: whatever gives an address or a storage (`data_ptr`, `set_`), leaves the graph
(`numpy`, `backward`, hooks), resizes memory under other views (`resize_`), calls back into
Python (`apply_`, `map_`) or belongs to the object protocol (`__reduce__`, `__setattr__`, ...).
"""

from __future__ import annotations

from .words import words

METHODS = words(
    """
    __abs__ abs abs_ absolute absolute_ acos acos_ acosh acosh_ __add__ add add_ addbmm addbmm_
    addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ _addmm_activation addmv addmv_ addr addr_
    adjoint all allclose amax amin aminmax __and__ angle any arccos arccos_ arccosh arccosh_
    arcsin arcsin_ arcsinh arcsinh_ arctan arctan_ arctan2 arctan2_ arctanh arctanh_ argmax
    argmin argsort argwhere as_strided as_strided_ as_strided_scatter asin asin_ asinh asinh_
    atan atan_ atan2 atan2_ atanh atanh_ baddbmm baddbmm_ bernoulli bernoulli_ bfloat16 bincount
    bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_
    bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm
    __bool__ bool broadcast_to byte cauchy_ cdouble ceil ceil_ cfloat chalf char cholesky
    cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_
    clip clip_ clone __complex__ _conj conj _conj_physical conj_physical conj_physical_
    contiguous copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_ count_nonzero cov cpu cross
    cuda cummax cummin cumprod cumprod_ cumsum cumsum_ deg2rad deg2rad_ dense_dim dequantize det
    detach detach_ diag diag_embed diagflat diagonal diagonal_scatter diff digamma digamma_ dim
    _dimI _dimV dim_order dist __div__ div div_ divide divide_ dot double dsplit element_size
    __eq__ eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp exp_ exp2 exp2_ expand expand_as
    expm1 expm1_ exponential_ fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud __float__
    float float_power float_power_ floor floor_ floor_divide floor_divide_ __floordiv__ fmax
    fmin fmod fmod_ frac frac_ frexp gather gcd gcd_ __ge__ ge ge_ geometric_ geqrf ger
    get_device __getitem__ greater greater_ greater_equal greater_equal_ __gt__ gt gt_ half
    hardshrink hash_tensor heaviside heaviside_ histc histogram hsplit hypot hypot_ i0 i0_
    __iadd__ __iand__ __idiv__ __ifloordiv__ igamma igamma_ igammac igammac_ __ilshift__
    __imod__ __imul__ __index__ index index_add index_add_ index_copy index_copy_ index_fill
    index_fill_ index_put index_put_ index_reduce index_reduce_ index_select inner __int__ int
    int_repr inverse __invert__ __ior__ __ipow__ ipu __irshift__ _is_all_true _is_any_true
    is_coalesced is_complex is_conj is_contiguous is_floating_point is_neg is_nonzero
    is_same_size is_signed isclose isfinite isinf isnan isneginf isposinf isreal istft __isub__
    item __itruediv__ __ixor__ kron kthvalue lcm lcm_ ldexp ldexp_ __le__ le le_ __len__ lerp
    lerp_ less less_ less_equal less_equal_ lgamma lgamma_ log log_ log10 log10_ log1p log1p_
    log2 log2_ log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and
    logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit
    logit_ logsumexp long __lshift__ __lt__ lt lt_ lu masked_fill masked_fill_ masked_scatter
    masked_scatter_ masked_select __matmul__ matmul matrix_exp matrix_power max maximum mean
    median min minimum mm __mod__ mode moveaxis movedim msort mtia __mul__ mul mul_ multinomial
    multiply multiply_ mv mvlgamma mvlgamma_ nan_to_num nan_to_num_ nanmean nanmedian
    nanquantile nansum narrow narrow_copy ndimension __ne__ ne ne_ __neg__ neg neg_ _neg_view
    negative negative_ nelement new_empty new_empty_strided new_full new_ones new_tensor
    new_zeros nextafter nextafter_ _nnz nonzero nonzero_static norm normal_ not_equal not_equal_
    numel __or__ orgqr ormqr outer permute pinverse polygamma polygamma_ __pos__ positive
    __pow__ pow pow_ prelu prod put put_ q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg rad2deg_ __radd__
    __rand__ random_ ravel __rdiv__ reciprocal reciprocal_ relu relu_ remainder remainder_
    renorm renorm_ repeat repeat_interleave requires_grad_ reshape reshape_as resolve_conj
    resolve_neg __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ roll __ror__ rot90 round
    round_ __rpow__ __rrshift__ __rshift__ rsqrt rsqrt_ __rsub__ __rtruediv__ __rxor__ scatter
    scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select select_scatter
    __setitem__ sgn sgn_ short sigmoid sigmoid_ sign sign_ signbit sin sin_ sinc sinc_ sinh
    sinh_ size slice_scatter slogdet smm softmax sort sparse_dim split split_with_sizes sqrt
    sqrt_ square square_ squeeze squeeze_ sspaddmm std stft storage_offset stride __sub__ sub
    sub_ subtract subtract_ sum sum_to_size svd swapaxes swapaxes_ swapdims swapdims_ t t_ take
    take_along_dim tan tan_ tanh tanh_ tensor_split tile to _to_dense to_dense to_padded_tensor
    tolist topk trace transpose transpose_ triangular_solve tril tril_ triu triu_ true_divide
    true_divide_ __truediv__ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_
    var vdot view view_as vsplit where xlogy xlogy_ __xor__ xpu zero_
    """
)
"""`torch.Tensor.X(...)`."""

ATTRIBUTES = words(
    """
    H T data device dtype imag is_cpu is_cuda is_leaf is_meta is_nested is_quantized is_sparse
    is_sparse_csr itemsize layout mH mT nbytes ndim real requires_grad shape
    """
)
"""`torch.Tensor.X` without a call."""
