"""Attention, encoder layers and mixtures of experts."""

ENTRIES = """
calc_reduced_attn_scores flash_attn_v3_varlen flashmask_attention flashmask_attention_v2
    fused_partial_rope fused_rotary_position_embedding moe_combine moe_combine_no_weight
    moe_gate_dispatch moe_gate_dispatch_permute moe_permute moe_unpermute number_count
    variable_length_memory_efficient_attention: paddle
_efficient_attention_forward _flash_attention_forward: aten random
flash_attn: paddle paddle_grad paddle_random canonical=mm+softmax+mm
flash_attn_qkvpacked flash_attn_unpadded flash_attn_v3 flash_attn_varlen_qkvpacked
    fused_dot_product_attention memory_efficient_attention: paddle paddle_random
    canonical=mm+softmax+mm
fused_softmax_mask: paddle paddle_grad paddle_args=t.t
fused_softmax_mask_upper_triangle: paddle paddle_grad paddle_args=t
_masked_softmax: aten torch
multi_head_attention_forward: functional random checked sized rule@functional=layer.attention
    canonical=mm+mm+mm+mm+softmax+mm
_native_multi_head_attention: aten torch sized
scaled_dot_product_attention: aten functional C_nn_is_functional random checked slow_in_float16
    rule@functional=layer.fused_attention canonical=mm+softmax+mm
_scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention: aten torch random
    canonical=mm+softmax+mm
_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention: aten torch random
    walkable@aten canonical=mm+softmax+mm
_scaled_dot_product_flash_attention_for_cpu: aten torch random checked@aten flops=attention
    row_blind walkable@aten canonical=mm+softmax+mm
_scaled_dot_product_fused_attention_overrideable: flops=attention
_transformer_encoder_layer_fwd: aten torch checked@aten,torch flops=encoder_layer sized
    canonical=mm+mm+mm+softmax+mm+mm+layer_norm+layer_norm+mm+mm+relu
"""
