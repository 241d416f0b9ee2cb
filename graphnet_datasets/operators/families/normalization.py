"""Normalizations and norms."""

ENTRIES = """
add_group_norm_silu fast_ln fast_rms_norm fused_batch_norm_act fused_bias_residual_layernorm
    fused_bn_add_activation fused_rms_norm_ext: paddle
batch_norm: aten torch functional checked kind=reduction wide_statistics statistics_norm paddle*
    paddle_grad paddle_args=t.t.t.t.t.b.f.f.s.b.b paddle_flops=8n
    statistics_flag@functional,torch=5.training.false rule@functional=value.batch_norm
batch_norm_elemt _batch_norm_impl_index batch_norm_stats native_norm norm_except_dim nuclear_norm:
    aten torch
batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_update_stats
    _batch_norm_with_update_functional: left_out=trusts_indices
_batch_norm_no_update: aten statistics_norm
_batch_norm_with_update: left_out=trusts_indices writes flops=8n
clip_by_norm: paddle paddle_args=t.i paddle_flops=pointwise
cudnn_batch_norm: aten flops=8n statistics_norm statistics_flag@aten=5.training.false
embedding_renorm: aten* torch_
frobenius_norm: aten torch paddle paddle_grad paddle_args=t.I.b.b paddle_flops=2n paddle_any_axis
fused_bias_dropout_residual_layer_norm: paddle paddle_random
_fused_rms_norm: aten torch flops=4n
fused_rms_norm: kind=reduction
group_norm: aten torch functional checked kind=reduction proportional torch_bias=3 paddle_bias=2
    paddle paddle_grad paddle_args=t.t.t.f.i.s paddle_flops=8n rule@functional=value.group_norm
instance_norm: aten torch functional checked kind=reduction wide_statistics proportional
    torch_bias=4 paddle_bias=2 paddle paddle_grad paddle_args=t.t.t.f paddle_flops=8n
    statistics_flag@functional,torch=5.use_input_stats.true
l1_norm: paddle* paddle_grad paddle_args=t
layer_norm: aten torch functional checked kind=reduction sized
    literals=constant.1.1.normalized_shape proportional torch_bias=3 paddle_bias=2 paddle
    paddle_grad paddle_args=t.nt.nt.f.i paddle_flops=8n rule@functional=value.layer_norm
linalg_matrix_norm linalg_norm: aten
linalg_vector_norm: aten flops=2n kind=reduction vector_norm
local_response_norm: functional checked
matrix_norm: linalg checked vector_norm
native_batch_norm: aten torch checked flops=8n statistics_norm statistics_flag@aten=5.training.false
    canonical=batch_norm
_native_batch_norm_legit: aten torch checked@aten,torch flops=8n
    statistics_flag@aten=5.training.false canonical=batch_norm
_native_batch_norm_legit_functional: aten checked@aten flops=8n
_native_batch_norm_legit_no_training: aten torch checked@aten,torch flops=4n wide_statistics
    statistics_norm canonical=batch_norm
native_group_norm: aten torch checked flops=8n stride_blind canonical=group_norm
native_layer_norm: aten torch checked flops=8n sized proportional canonical=layer_norm
norm: aten torch linalg Tensor public VF_differs foreach checked flops=2n kind=reduction vector_norm
    paddle paddle_grad paddle_args=t.i.f.b paddle_flops=2n paddle_any_axis
normalize: functional checked kind=reduction
p_norm: kind=reduction vector_norm paddle paddle_grad paddle_args=t.f.i.f.b.b paddle_flops=2n
    canonical=norm
renorm: aten* torch Tensor* checked paddle* paddle_grad
rms_norm: aten torch functional checked kind=reduction sized proportional torch_bias=2
    paddle_bias=99 paddle paddle_grad paddle_args=t.t.I.f paddle_flops=4n rule@torch=layer.rms_norm
    canonical=pow+mean+add+rsqrt+mul+mul
spectral_norm: paddle paddle_grad
squared_l2_norm: paddle paddle_grad paddle_args=t
sync_batch_norm: statistics_norm paddle_ paddle_args_=t.t.t.t.t.b.f.f.s.b.b paddle_flops=8n
vector_norm: linalg checked kind=reduction vector_norm canonical=norm
_weight_norm: aten torch checked@aten,torch
_weight_norm_interface: aten torch checked@aten flops=gates3
"""
