"""Sizes, dtypes and other properties of tensors."""

ENTRIES = """
allclose: aten torch Tensor checked reads_all paddle
broadcast_shapes: torch public checked
dense_dim: aten Tensor
device dtype: attribute reads_some elementless
dim size: aten Tensor checked reads_some elementless
_dim_arange promote_types result_type: aten torch
dim_order element_size ndimension nelement: Tensor checked
equal: aten torch Tensor checked flops=0 reads_all kind=pointwise equality paddle* paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts canonical=compare
equal_all: paddle paddle_args=t.t
get_device is_complex is_conj is_neg is_same_size is_signed: aten torch Tensor checked
hash_tensor: aten torch Tensor
_is_all_true _is_any_true: aten torch Tensor checked@Tensor,aten,torch
is_contiguous storage_offset: aten Tensor checked
is_cpu is_cuda is_leaf is_meta is_nested itemsize layout nbytes: attribute
is_empty: paddle paddle_args=t
is_floating_point: aten torch Tensor checked elementless
is_nonzero: aten torch Tensor checked flops=0
is_tensor sym_float sym_int sym_sqrt: torch checked
_is_zerotensor: aten
item: aten prims Tensor checked flops=0 folded shape_giving
_local_scalar_dense: aten checked@aten flops=0 moves_nothing folded shape_giving
ndim: attribute elementless
numel: aten torch Tensor checked elementless paddle paddle_args=t paddle_flops=1n
shape: attribute reads_some elementless paddle paddle_args=t paddle_flops=0
shape64: elementless paddle paddle_args=t paddle_flops=0
_shape_as_tensor: aten torch checked@torch flops=0
stride: aten Tensor checked reads_some
_sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_log2 _sym_sin _sym_sinh _sym_sqrt _sym_tan
    _sym_tanh: torch
sym_is_contiguous: aten checked
sym_ite: torch checked rule@torch=number.choose
sym_max: torch checked rule@torch=number.maximum
sym_min: torch checked rule@torch=number.minimum
sym_not: torch checked rule@torch=number.negate
sym_numel sym_size sym_storage_offset sym_stride: aten checked flops=0
sym_sum: torch checked rule@torch=number.add_up
tolist: Tensor checked reads_all limit=parts shape_giving
"""
