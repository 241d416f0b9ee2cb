"""Pools, padding and resampling of images and sequences."""

ENTRIES = """
adaptive_avg_pool1d: aten torch functional_is_torch checked literals=constant.1.1.output_size
    canonical=avg_pool
_adaptive_avg_pool2d _adaptive_avg_pool3d: aten torch checked@aten flops=1n canonical=avg_pool
adaptive_avg_pool2d: aten functional C_nn_is_functional checked sized
    literals=constant.1.1.output_size rule@functional=layer.adaptive_pool canonical=avg_pool
adaptive_avg_pool3d: aten functional C_nn_is_functional checked literals=constant.1.1.output_size
    canonical=avg_pool
adaptive_max_pool1d: aten torch functional checked order=adaptive_max_pool
    literals=constant.1.1.output_size canonical=max_pool
adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices:
    functional checked order=adaptive_max_pool
adaptive_max_pool2d adaptive_max_pool3d: aten functional C_nn checked flops=1n
    order=adaptive_max_pool literals=constant.1.1.output_size canonical=max_pool
affine_grid: functional checked literals=size.1.1.size paddle paddle_grad
affine_grid_generator: aten torch
avg_pool1d: aten torch functional_is_torch checked flops=pool limit=windows
    literals=constant.1.2.kernel_size.stride canonical=avg_pool
avg_pool2d: aten functional C_nn_is_functional checked flops=pool limit=windows
    literals=constant.1.2.kernel_size.stride rule@functional=layer.average_pool canonical=avg_pool
avg_pool3d: aten functional C_nn_is_functional checked flops=pool limit=windows
    literals=constant.1.2.kernel_size.stride canonical=avg_pool
bicubic_interp: literals=size.5.7 paddle paddle_grad paddle_args=t.n.n.n.s.i.i.i.EIF.s.b.i
    paddle_flops=taps16 canonical=interp
bilinear_interp: literals=size.5.7 shape_taking paddle paddle_grad
    paddle_args=t.n.n.n.s.i.i.i.EF.s.b.i paddle_flops=taps4 canonical=interp
channel_shuffle pixel_shuffle pixel_unshuffle: aten torch functional_is_torch checked flops=0 paddle
    paddle_grad paddle_args=t.i.s paddle_flops=0
col2im im2col: aten C_nn checked flops=0
constant_pad_nd: aten torch checked flops=0
crop temporal_shift: paddle paddle_grad paddle_flops=0
cudnn_affine_grid_generator cudnn_grid_sampler: aten
fold: functional checked sized literals=size.1.1.output_size paddle paddle_grad paddle_flops=0
fractional_max_pool2d fractional_max_pool3d: aten functional C_nn random order=fractional_max_pool
    paddle
fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices: functional random
    order=fractional_max_pool
grid_sample: functional checked paddle paddle_grad paddle_args=t.t.s.s.b
grid_sampler: aten torch checked
grid_sampler_2d: aten torch checked flops=taps4
grid_sampler_3d: aten torch checked flops=taps8
im2sequence interp_antialias: paddle
interpolate: functional checked sized literals=size.1.1.size shape_taking
    rule@functional=layer.interpolate canonical=interp
linear_interp: literals=size.5.7 paddle paddle_grad paddle_args=t.n.n.n.s.i.i.i.EIF.s.b.i
    paddle_flops=taps2 canonical=interp
lp_pool1d lp_pool3d: functional checked limit=windows
lp_pool2d: functional checked limit=windows paddle paddle_grad
max_pool1d: aten torch functional checked flops=pool limit=windows loops_by_number order=max_pool
    literals=constant.1.2.kernel_size.stride canonical=max_pool
max_pool1d_with_indices: aten torch functional checked limit=windows order=max_pool
    canonical=max_pool
max_pool2d: aten torch functional checked limit=windows order=max_pool
    literals=constant.1.2.kernel_size.stride rule@functional=layer.max_pool canonical=max_pool
max_pool2d_with_index max_pool3d_with_index: order=max_pool paddle paddle_grad canonical=max_pool
max_pool2d_with_indices max_pool3d_with_indices: aten functional C_nn checked flops=pool
    limit=windows order=max_pool canonical=max_pool
max_pool3d: aten torch functional checked limit=windows order=max_pool
    literals=constant.1.2.kernel_size.stride canonical=max_pool
max_unpool1d: functional literals=size.64.64.output_size
max_unpool2d max_unpool3d: aten functional C_nn literals=size.64.64.output_size
mkldnn_max_pool2d mkldnn_max_pool3d: limit=windows
native_channel_shuffle: aten torch functional_is_torch checked
nearest_interp: literals=size.5.7 shape_taking paddle paddle_grad
    paddle_args=t.n.n.n.s.i.i.i.EF.s.b.i paddle_flops=taps0 canonical=interp
pad: aten functional C_nn_is_functional checked shares literals=constant.1.1.pad.paddings moving
    shape_taking linear_in_weight box_columns literal_elements paddle paddle_grad paddle_args=t.I.ft
    paddle_flops=0 rule@functional=layer.pad
pad3d: literals=constant.1.1 paddle paddle_grad paddle_args=t.I.s.f.s paddle_flops=0 canonical=pad
_pad_circular _pad_enum _upsample_lanczos2d_aa: aten C_nn
pool2d pool3d: paddle paddle_grad paddle_args=t.I.I.I.b.b.s.s.b.b.s paddle_flops=pool
    canonical=avg_pool
ps_roi_pool: torch_boxes=1.boxes
psroi_pool: paddle_boxes=1.boxes paddle
reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d: aten C_nn checked flops=0 adds_paddings
_resize: flops_=0
resize: flops_=0 sized
roi_pool: torch_boxes=1.boxes paddle_boxes=1.boxes paddle paddle_grad
segment_pool unpool unpool3d: paddle paddle_grad
shuffle_channel: paddle paddle_flops=0
trilinear_interp: paddle paddle_grad paddle_flops=taps8 canonical=interp
upsample: functional checked literals=size.1.1.size canonical=interp
upsample_bicubic2d: aten C_nn checked flops=taps16 canonical=interp
_upsample_bicubic2d_aa: aten C_nn flops=taps16
upsample_bilinear upsample_nearest: functional checked literals=size.1.1.size
upsample_bilinear2d: aten C_nn checked flops=taps4 canonical=interp
_upsample_bilinear2d_aa: aten C_nn flops=taps4
upsample_linear1d: aten C_nn checked flops=taps2 canonical=interp
upsample_nearest1d upsample_nearest2d upsample_nearest3d: aten C_nn checked flops=0 canonical=interp
_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d: aten C_nn
    checked@aten flops=0
upsample_trilinear3d: aten C_nn checked flops=taps8 canonical=interp
"""
