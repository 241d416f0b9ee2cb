"""Operators that read or write elements at indices or where a mask is true."""

ENTRIES = """
argwhere: aten torch Tensor checked shape_giving
as_strided_scatter: aten torch Tensor checked strided
count_nonzero: aten torch Tensor checked flops=1n kind=reduction
diagonal_scatter: aten torch Tensor checked
embedding: aten torch functional checked flops=0 reads_part reads_some
    torch_index=0.input/table:1.weight aten_index=1.indices/table:0.weight
    paddle_index=0.x/table:1.weight proportional paddle paddle_grad paddle_args=t.t.i.b
    paddle_flops=0 paddle_reads_part rule@functional=value.embedding canonical=gather
_embedding_bag: aten torch flops=1n offsets=2.offsets
embedding_bag: aten torch functional checked reads_some torch_index=0.input/table:1.weight
    aten_index=1.indices/table:0.weight proportional offsets=2.offsets unchecked@aten,torch
_embedding_bag_forward_only: aten torch flops=1n
embedding_with_scaled_gradient send_uv: paddle
gather: aten torch Tensor checked flops=0 reads_part reads_some
    torch_index=2.index/table:0.input/axis:1.dim paddle_index=1.index/table:0.x/axis:2.axis
    box_columns paddle paddle_grad paddle_args=t.t.it paddle_flops=0 paddle_reads_part
    rule@Tensor,torch=value.gather
gather_nd: any_index box_columns paddle paddle_grad paddle_args=t.t paddle_flops=0 paddle_reads_part
    canonical=gather
gather_tree: paddle paddle_flops=0 canonical=gather
index: aten Tensor operator checked flops=0 reads_part reads_some any_index box_columns
    unchecked@Tensor canonical=gather
index_add: aten* torch Tensor* checked flops*=1n writes_part_ dispatches*
    torch_index=2.index/table:0.input/axis:1.dim paddle_index=1.index/table:0.x/axis:2.axis paddle*
    paddle_grad paddle_args=t.t.t.i paddle_flops=0 rule@Tensor,torch=sum.index_add canonical=scatter
index_copy: aten* torch Tensor* checked flops*=0 writes_part_ order*=overwrite
    torch_index=2.index/table:0.input/axis:1.dim canonical=scatter
index_fill: aten* torch Tensor* checked flops*=0 writes_part_
    torch_index=2.index/table:0.input/axis:1.dim
index_put: aten* torch* Tensor* checked flops*=0 writes_part_ any_index paddle* paddle_grad
    paddle_args=t.T.t.b paddle_flops=0 order*=overwrite canonical=scatter
_index_put_impl: any_index
index_reduce: aten* torch Tensor* flops=1n torch_index=2.index/table:0.input/axis:1.dim
index_sample: paddle paddle_grad paddle_args=t.t paddle_flops=0 paddle_reads_part canonical=gather
index_select: aten torch Tensor checked flops=0 reads_part reads_some
    torch_index=2.index/table:0.input/axis:1.dim paddle_index=1.index/table:0.x/axis:2.axis
    box_columns paddle paddle_grad paddle_args=t.t.i paddle_flops=0 paddle_reads_part
    rule@Tensor,torch=value.index_select canonical=gather
isin: aten torch checked flops=pointwise equality
isinf: aten torch Tensor math checked folded kind=pointwise paddle paddle_args=t
    paddle_flops=pointwise
masked_fill: aten* torch Tensor* checked flops*=0 follows_strides kind=pointwise passes_on*
    number_operands moving* literal_elements condition=1 paddle* paddle_grad paddle_args=t.t.t
    paddle_flops=0 rule@Tensor=mask.masked_fill rule@Tensor_=mask.masked_fill_in_place beside@Tensor
    canonical=where
_masked_scale _unsafe_index _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate: aten torch
masked_scatter: aten* torch Tensor* checked flops*=0 shape_giving* canonical=where
masked_select: aten torch Tensor checked flops=0 reads_part shape_giving box_columns paddle
    paddle_grad paddle_args=t.t paddle_flops=0
max_with_index min_with_index: paddle paddle_grad
nonzero: aten torch Tensor checked flops=0 shape_giving paddle paddle_args=t paddle_flops=0
nonzero_static select_scatter slice_scatter: aten torch Tensor checked flops=0
put: aten* torch Tensor* any_index order*=overwrite canonical=scatter
put_along_axis: paddle_index=1.indices/table:0.arr/axis:3.axis paddle* paddle_grad
    paddle_args=t.t.t.i.s.b paddle_flops=0 canonical=scatter
repeat_interleave: aten torch Tensor checked flops=0 literals=constant.1.1.repeats.output_size
    moving shape_giving paddle paddle_grad paddle_args=t.i.i.i paddle_flops=0 canonical=0
repeat_interleave_with_tensor_index: paddle paddle_grad paddle_flops=0
scatter: aten* torch Tensor* checked flops*=0 writes_part_ order*=overwrite
    torch_index=2.index/table:0.input/axis:1.dim paddle_index=1.index/table:0.x paddle* paddle_grad
    paddle_args=t.t.t.b paddle_flops=0
scatter_add: aten* torch Tensor* checked flops*=1n writes_part_
    torch_index=2.index/table:0.input/axis:1.dim rule@Tensor,torch=sum.scatter_add
    rule@Tensor_=sum.scatter_add_in_place canonical=scatter
scatter_nd_add: any_index paddle paddle_grad paddle_flops=0 canonical=scatter
scatter_reduce: aten* torch Tensor* checked flops*=1n writes_part_
    torch_index=2.index/table:0.input/axis:1.dim canonical=scatter
segment_csr: offsets=1.indptr
segment_reduce: aten torch flops=1n offsets=4.offsets
select: aten torch Tensor checked folded kind=view shares same_keys reads_some sized moving
    linear_in_weight
select_copy: aten torch checked flops=0
send_u_recv: paddle_index=1.src_index+2.dst_index/table:0.x paddle paddle_grad
    paddle_args=t.t.t.s.EItT paddle_flops=messages
send_ue_recv: paddle_index=2.src_index+3.dst_index/table:0.x paddle
set_value: paddle* paddle_grad paddle_args_=t.EItT.EItT.EItT.EI.EI.EI.EI.IF paddle_flops=0
    canonical=scatter
set_value_with_tensor: paddle* paddle_grad paddle_args=t.t.EItT.EItT.EItT.EI.EI.EI paddle_flops=0
    canonical=scatter
shard_index: paddle paddle_flops=0
take: aten torch Tensor flops=0 reads_part reads_some any_index canonical=gather
take_along_axis: paddle_index=1.indices/table:0.arr/axis:2.axis paddle paddle_grad paddle_args=t.t.i
    paddle_flops=0 canonical=gather
take_along_dim: aten torch Tensor checked reads_some torch_index=1.indices/table:0.input/axis:2.dim
    canonical=gather
unravel_index: torch public
where: aten prims torch Tensor checked flops=0 follows_strides folded kind=pointwise passes_on
    moving box_columns literal_elements condition=0 paddle* paddle_grad paddle_args=t.t.t
    paddle_flops=0 paddle_broadcasts rule@torch=mask.where beside@torch
"""
