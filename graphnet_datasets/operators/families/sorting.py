"""Operators that sort, rank and count elements."""

ENTRIES = """
argmax: aten torch Tensor checked flops=1n kind=reduction order=arg_extreme elementless paddle
    paddle_args=t.it.b.b.d paddle_flops=1n paddle_any_axis rule@Tensor,torch=order.argmax
argmin: aten torch Tensor checked flops=1n kind=reduction order=arg_extreme elementless paddle
    paddle_args=t.it.b.b.d paddle_flops=1n paddle_any_axis
argsort: aten torch Tensor checked flops=sort order=argsort paddle paddle_grad paddle_args=t.i.b.b
    paddle_any_axis rule@Tensor,torch=order.argsort canonical=sort
bincount: aten torch Tensor checked flops=0 data_sized dispatches shape_giving paddle
    paddle_args=t.n.it
bucketize: aten torch checked flops=0
cummax cummin: aten torch Tensor checked flops=1n order=cumulative paddle paddle_grad
    paddle_args=t.i.d paddle_flops=1n paddle_any_axis
_cummax_helper _cummin_helper: left_out=trusts_indices writes
histc: aten torch Tensor checked flops=1n dispatches shape_giving
histogram: aten torch Tensor paddle
histogramdd _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors: aten
    torch
int_bincount: paddle
kthvalue: aten torch Tensor checked flops=1n order=kthvalue paddle paddle_grad
median: aten torch Tensor checked flops=1n stride_blind order=median paddle paddle_grad
    paddle_args=t.I.b.s paddle_any_axis
mode: aten torch Tensor checked flops=1n order=mode paddle paddle_grad
msort: aten torch Tensor checked flops=sort
nanmedian: aten torch Tensor checked flops=1n stride_blind order=median paddle paddle_grad
searchsorted: aten torch checked flops=0 offsets=0.sorted_sequence paddle paddle_args=t.t.b.b
sort: aten torch Tensor checked flops=sort order=sort rule@Tensor,torch=order.sort
topk: aten torch Tensor checked flops=sort order=topk literals=constant.1.1.k paddle paddle_grad
    paddle_args=t.it.i.b.b paddle_any_axis rule@Tensor,torch=order.topk canonical=sort
_unique: aten torch order=unique
unique: torch Tensor public checked order=unique shape_giving paddle paddle_args=t.b.b.b.EI.d
_unique2: aten torch flops=1n order=unique shape_giving
unique_consecutive: aten torch Tensor public VF_differs checked flops=1n shape_giving paddle
unique_dim: aten checked flops=1n order=unique_dim shape_giving
unique_dim_consecutive: aten checked
"""
