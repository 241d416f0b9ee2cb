"""Matrix products, convolutions and other contractions."""

ENTRIES = """
addbmm: aten* torch Tensor* checked flops=batched_product product kind=product matmul canonical=mm
addmm: aten* torch sparse Tensor* checked product kind=product matmul proportional paddle*
    paddle_grad paddle_flops=product rule@torch=value.addmm canonical=mm
addmv: aten* torch* Tensor* checked flops=second_matrix_vector canonical=mm
addr: aten* torch Tensor* checked flops=pointwise canonical=mm
baddbmm: aten* torch Tensor* checked product kind=product matmul proportional paddle* paddle_grad
    paddle_flops=product canonical=mm
batched_gemm depthwise_conv3d_bias fused_gemm_epilogue gemm_epilogue linear_v2: paddle
bilinear: aten torch functional_is_torch checked product kind=product matmul proportional paddle
    paddle_grad canonical=mm
bmm: aten torch Tensor checked product kind=product matmul proportional paddle paddle_grad
    paddle_args=t.t paddle_flops=matmul rule@Tensor,torch=value.matmul canonical=mm
cdist: aten torch public VF_differs checked
_cdist_forward: aten checked@aten flops=distances
chain_matmul: aten torch public VF_differs limit=chain matmul canonical=mm
_compute_linear_combination _trilinear: aten torch
conv1d: aten torch functional_is_torch checked product kind=product proportional
    rule@torch=value.convolution_1d canonical=conv
conv2d: aten torch functional_is_torch checked product kind=product proportional paddle paddle_grad
    paddle_args=t.t.I.I.s.I.i.s paddle_flops=convolution rule@torch=value.convolution_2d
    canonical=conv
conv2d_transpose: kind=product proportional paddle paddle_grad paddle_args=t.t.I.I.EI.EI.s.i.I.s
    paddle_flops=transposed_convolution canonical=conv_transpose
conv2d_transpose_bias: paddle paddle_args=t.t.t.I.I.I.I.s.i.I.s canonical=conv_transpose
conv3d: aten torch functional_is_torch checked product kind=product proportional paddle paddle_grad
    paddle_args=t.t.I.I.s.i.I.s paddle_flops=convolution rule@torch=value.convolution_3d
    canonical=conv
conv3d_transpose: kind=product proportional paddle paddle_grad paddle_flops=transposed_convolution
    canonical=conv_transpose
_conv_depthwise2d conv_depthwise3d slow_conv3d slow_conv_dilated2d slow_conv_dilated3d thnn_conv2d:
    aten C_nn canonical=conv
conv_tbc: aten torch functional_is_torch proportional canonical=conv
conv_transpose1d conv_transpose3d: aten torch functional_is_torch checked product kind=product
    proportional canonical=conv_transpose
conv_transpose2d: aten torch functional_is_torch checked product kind=product proportional
    rule@torch=value.transposed_convolution canonical=conv_transpose
convert_element_type: prims
_convolution _convolution_mode: aten torch canonical=conv
convolution: aten torch checked product kind=product proportional canonical=conv
correlation: paddle paddle_grad
cross: aten torch linalg Tensor checked flops=pointwise paddle paddle_grad paddle_args=t.t.i
    paddle_alike
cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
    _pdist_forward _slow_conv2d_forward slow_conv3d_forward: aten
deformable_conv: proportional paddle paddle_grad paddle_args=t.t.t.t.I.I.I.i.i.i
depthwise_conv2d: kind=product proportional paddle paddle_grad paddle_args=t.t.I.I.s.i.I.s
    paddle_flops=convolution canonical=conv
depthwise_conv2d_bias: paddle paddle_args=t.t.t.I.I.s.i.I.s
depthwise_conv2d_transpose: proportional paddle paddle_grad paddle_args=t.t.I.I.EI.EI.s.i.I.s
    paddle_flops=transposed_convolution canonical=conv_transpose
dot: aten torch Tensor checked flops=matrix_vector product kind=product paddle paddle_grad
    paddle_args=t.t paddle_flops=product paddle_alike canonical=mm
einsum: aten torch public VF_differs checked slow_in_float16 limit=chain kind=product matmul shares
    shares_all proportional paddle paddle_grad paddle_args=T.s canonical=mm
_euclidean_dist: aten torch flops=distances
fc: proportional torch_bias=2 paddle_bias=99
ger: aten torch Tensor checked
_grouped_mm: aten torch checked@aten,torch flops=row_product kind=product matmul canonical=mm
grouped_mm: functional checked matmul
hspmm: left_out=sparse_indices
imatmul: operator kind=product matmul
inner: aten torch Tensor checked matmul canonical=mm
kron: aten torch Tensor checked paddle paddle_grad paddle_args=t.t
linear: aten functional C_nn_is_functional checked flops=row_product product kind=product matmul
    proportional torch_bias=2 paddle_bias=99 paddle rule@functional=value.linear canonical=mm
matmul: aten torch linalg Tensor operator checked product kind=product matmul proportional paddle
    paddle_grad paddle_args=t.t.b.b paddle_flops=matmul rule@Tensor,operator,torch=value.matmul
    canonical=mm
__matmul__: Tensor checked matmul proportional
mkldnn_convolution: flops=convolution canonical=conv
mm: aten torch sparse Tensor foreach checked product kind=product matmul proportional
mv: aten torch Tensor checked flops=matrix_vector product kind=product matmul proportional paddle
    paddle_grad paddle_args=t.t paddle_flops=matmul canonical=mm
outer: aten torch Tensor checked flops=pointwise canonical=mm
pdist: aten torch functional_is_torch checked
slow_conv_transpose2d slow_conv_transpose3d: aten C_nn canonical=conv_transpose
tensordot: aten torch public VF_differs checked matmul proportional canonical=mm
vdot: aten torch Tensor checked flops=matrix_vector canonical=mm
"""
