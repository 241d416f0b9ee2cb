"""Operators that create tensors of a given size."""

ENTRIES = """
arange: aten torch checked factory flops=0 kind=source sized literals=create.0.1.start.end
    shape_taking paddle paddle_args=t.t.t.d.p paddle_flops=0 rule@torch=making.arange
as_tensor: torch checked factory
asarray: factory
assign_value: paddle* paddle_args_=t.EI.d.F.p paddle_flops=0
empty: aten prims torch checked factory flops=0 moves_nothing kind=source sized
    literals=create.0.64.size.shape.sizes shape_taking paddle paddle_flops=0
empty_like: aten torch checked flops=0 moves_nothing elementless paddle paddle_flops=0
    rule@torch=making.like
empty_permuted empty_strided: aten prims torch checked factory flops=0 moves_nothing
eye: aten torch checked factory flops=0 kind=source literals=create.0.1.n.m paddle
    paddle_args=i.i.d.p paddle_flops=0
fill: aten* prims torch* Tensor_ checked flops*=0 only_writes_ folded_ paddle* paddle_grad
    paddle_args=t.i paddle_flops=0
fill_diagonal: aten_ Tensor_ checked paddle* paddle_grad paddle_flops=0
fill_diagonal_tensor: paddle* paddle_grad paddle_flops=0
full: aten prims torch checked factory flops=0 kind=source sized
    literals=create.0.0.size.shape.sizes shape_taking paddle* paddle_args=EItT.fitb.d.p
    paddle_args_=t.EI.fib.d.p paddle_flops=0 rule@torch=making.full
full_batch_size_like range_v2 sequence_mask: paddle paddle_flops=0
full_int_array: paddle paddle_args=IF.d.p paddle_flops=0
full_like: aten prims torch checked flops=0 kind=pointwise elementless paddle paddle_args=t.fitb.d.p
    paddle_flops=0 rule@torch=making.full_like
full_with_tensor: literals=create.0.0.size.shape.sizes paddle paddle_args=t.EItT.d paddle_flops=0
iota: prims factory
linspace: aten torch checked factory flops=0 kind=source sized literals=create.0.2.start.end.steps
    shape_taking paddle paddle_args=t.t.t.d.p paddle_flops=0 rule@torch=making.linspace
logspace: aten torch checked factory flops=0 paddle paddle_flops=0
new_empty: aten Tensor checked flops=0 moves_nothing kind=source sized
    literals=create.1.64.size.shape.sizes elementless
new_empty_strided: aten Tensor checked flops=0 moves_nothing
new_full: aten Tensor checked flops=0 kind=source sized literals=create.1.1.size.shape.sizes
    elementless rule@Tensor=making.new_full
new_ones new_zeros: aten Tensor checked flops=0 kind=source sized
    literals=create.1.64.size.shape.sizes elementless rule@Tensor=making.new
new_tensor: Tensor checked
one_hot: aten functional C_nn_is_functional checked flops=0 data_sized dispatches
    literals=constant.1.1.num_classes torch_index=0.tensor/count:1.num_classes
    paddle_index=0.x/count:1.num_classes paddle paddle_args=t.it paddle_flops=0
ones zeros: aten torch checked factory flops=0 kind=source sized
    literals=create.0.64.size.shape.sizes shape_taking paddle paddle_flops=0
    rule@torch=making.filled
ones_like zeros_like: aten torch checked flops=0 folded kind=pointwise elementless paddle
    paddle_flops=0 rule@torch=making.like
range: aten torch checked factory shape_taking
scalar_tensor: aten prims torch checked factory flops=0 kind=source
tensor: torch checked factory kind=source literals=constant.0.0 rule@torch=making.tensor
tril_indices triu_indices: aten torch checked factory flops=0 literals=create.0.1.row.col paddle
    paddle_flops=0
zero: aten* torch_ Tensor_ foreach* checked flops*=0 only_writes_ folded_
"""
