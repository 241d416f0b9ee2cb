"""Kinds of operators for a fusing compiler: pointwise, view, reduction, product, source."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..sample.targets import base_name

Kind: TypeAlias = Literal["pointwise", "view", "reduction", "product", "source", "opaque"]

_POINTWISE = """
add sub subtract rsub mul multiply div divide truediv floordiv floor_divide mod remainder fmod neg
negative pos abs pow square sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan
asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv sigmoid logit relu relu6 elu
celu selu gelu silu swish mish leaky_relu prelu hardtanh hardswish hardsigmoid hardshrink softshrink
softplus softsign tanhshrink threshold logsigmoid log_sigmoid clamp clamp_min clamp_max clip floor
ceil round trunc frac sign sgn maximum minimum fmax fmin eq ne lt le gt ge equal not_equal less_than
less_equal greater_than greater_equal logical_and logical_or logical_xor logical_not bitwise_and
bitwise_or bitwise_xor bitwise_not and_ or_ xor invert where masked_fill lerp addcmul addcdiv
xlogy isnan isinf isfinite nan_to_num dropout dropout1d dropout2d dropout3d alpha_dropout
feature_dropout native_dropout to type type_as float double half bfloat16 int long short bool byte
cast scale clone copy assign zeros_like ones_like full_like iadd isub imul itruediv ipow triu tril
complex polar heaviside copysign hypot rad2deg deg2rad sinc stanh
"""
_VIEW = """
view view_as reshape reshape_as _reshape_alias _unsafe_view transpose t T mT H mH adjoint permute
movedim moveaxis swapaxes swapdims squeeze unsqueeze expand expand_as broadcast_to
broadcast_tensors getitem __getitem__ chunk split split_with_sizes split_with_num tensor_split
hsplit vsplit dsplit unbind select narrow slice strided_slice diagonal unfold as_strided unflatten
flatten ravel real imag detach alias view_as_real view_as_complex contiguous
"""
_REDUCTION = """
sum mean prod amax amin max min all any var std var_mean std_mean norm p_norm vector_norm
linalg_vector_norm logsumexp argmax argmin softmax log_softmax softmin layer_norm group_norm
batch_norm instance_norm rms_norm fused_rms_norm normalize cumsum cumprod nansum nanmean
count_nonzero aminmax
"""
_PRODUCT = """
linear matmul imatmul mm bmm addmm baddbmm addbmm mv dot einsum bilinear conv1d conv2d conv3d
convolution depthwise_conv2d conv_transpose1d conv_transpose2d conv_transpose3d conv2d_transpose
conv3d_transpose _grouped_mm
"""
_SOURCE = """
zeros ones full empty arange linspace eye tensor scalar_tensor new_zeros new_ones new_full new_empty
"""
_NAMES: dict[Kind, str] = {
    "pointwise": _POINTWISE,
    "view": _VIEW,
    "reduction": _REDUCTION,
    "product": _PRODUCT,
    "source": _SOURCE,
}
_KINDS: dict[str, Kind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}


def kind_of(target: str) -> Kind:
    """Return the kind of an operator for a fusing compiler; `opaque` operators are not fused.

    In-place operators have the kind of their out-of-place form. A reduction may broadcast its
    result back, like a softmax or a normalization; a source creates elements.

    >>> kind_of("torch.Tensor.add_"), kind_of("paddle._C_ops.matmul"), kind_of("torch.sort")
    ('pointwise', 'product', 'opaque')
    """
    name = base_name(target)
    return _KINDS.get(name) or _KINDS.get(name.rstrip("_"), "opaque")
