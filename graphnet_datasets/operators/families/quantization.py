"""Quantized tensors and products."""

ENTRIES = """
apply_per_channel_scale dequantize_abs_max dequantize_linear dequantize_log
    fake_channel_wise_dequantize_max_abs fake_channel_wise_quantize_abs_max
    fake_channel_wise_quantize_dequantize_abs_max fake_dequantize_max_abs fake_quantize_abs_max
    fake_quantize_dequantize_abs_max fused_act_dequant llm_int8_linear quantize_linear
    weight_dequantize weight_only_linear weight_quantize: paddle
dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
    q_zero_point: aten torch Tensor
empty_quantized: factory
_fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine
    fake_quantize_per_channel_affine _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic _saturate_weight_to_fp16
    _weight_int8pack_mm: aten torch
fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine_cachemask
    _scaled_grouped_mm_v2 _scaled_mm_v2: aten
fake_quantize_per_tensor_affine: aten torch flops=pointwise
fused_moving_avg_obs_fake_quant: left_out=trusts_indices writes
_int_mm _scaled_grouped_mm: aten torch flops=row_product matmul
int_mm: matmul
is_quantized: attribute
nanquantile quantile: aten torch Tensor checked
qscheme: Tensor
quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d: limit=windows
scaled_grouped_mm scaled_mm: functional matmul
_scaled_mm: aten torch matmul
"""
