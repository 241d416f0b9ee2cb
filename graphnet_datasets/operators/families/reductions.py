"""Sums, means, extremes and other reductions, and cumulative operators."""

ENTRIES = """
all any: aten torch Tensor checked flops=1n folded kind=reduction paddle paddle_args=t.EI.b
    paddle_flops=1n paddle_any_axis
amax amin: aten prims torch Tensor checked flops=1n folded kind=reduction paddle paddle_grad
    paddle_args=t.EI.b paddle_flops=1n paddle_any_axis
_aminmax gradient _logcumsumexp: aten torch
aminmax: aten torch Tensor checked flops=1n kind=reduction
corrcoef cov: aten torch Tensor checked
cumprod: aten* torch Tensor* checked flops=1n kind=reduction paddle* paddle_grad paddle_args=t.i.b.b
    paddle_flops=1n paddle_any_axis
cumsum: aten* torch Tensor* checked flops=1n kind=reduction paddle* paddle_grad
    paddle_args=t.it.b.b.b paddle_flops=1n paddle_any_axis rule@Tensor,torch=value.cumulated
cumulative_trapezoid trapezoid trapz: aten torch checked
diff: aten torch Tensor checked offsets=0.input
dist: aten torch Tensor checked flops=2n paddle paddle_grad
_log_softmax _safe_softmax _softmax: aten torch checked@aten,torch flops=5n
log_softmax: aten torch functional special sparse Tensor checked kind=reduction paddle paddle_grad
    paddle_args=t.i paddle_flops=5n paddle_any_axis rule@functional=element.softmax
    rule@Tensor,torch=element.softmax_of_tensor
logcumsumexp: aten torch Tensor checked flops=1n paddle paddle_grad paddle_args=t.i.b.b.b
    paddle_any_axis
logsumexp: aten torch special Tensor checked flops=3n kind=reduction paddle paddle_grad
    paddle_args=t.EI.b.b paddle_flops=3n paddle_any_axis
max: aten torch Tensor builtins foreach checked flops=1n reduces_one kind=reduction order=extreme
    box_columns paddle paddle_grad paddle_args=t.EItT.b paddle_flops=1n paddle_any_axis
    rule@torch=element.extreme beside@torch
mean: aten torch Tensor checked flops=1n kind=reduction paddle paddle_grad paddle_args=t.EItT.b
    paddle_flops=1n paddle_any_axis rule@Tensor,torch=value.mean
mean_all: paddle paddle_grad paddle_args=t
min: aten torch Tensor builtins checked flops=1n reduces_one kind=reduction order=extreme
    box_columns paddle paddle_grad paddle_args=t.EItT.b paddle_flops=1n paddle_any_axis
    rule@torch=element.extreme beside@torch
nanmean: aten torch Tensor checked kind=reduction
nansum: aten torch Tensor checked flops=1n kind=reduction paddle paddle_grad paddle_args=t.I.d.b
    paddle_any_axis
prod: aten prims torch Tensor checked flops=1n folded kind=reduction paddle paddle_grad
    paddle_args=t.EItT.b.b paddle_flops=1n paddle_any_axis
reduce_as: paddle paddle_grad paddle_args=t.t canonical=sum
softmax: aten torch functional special sparse Tensor checked kind=reduction paddle* paddle_grad
    paddle_args=t.i paddle_flops=5n paddle_any_axis rule@functional=element.softmax
    rule@Tensor,torch=element.softmax_of_tensor
softmin: functional checked kind=reduction
std: aten torch Tensor checked flops=3n kind=reduction paddle paddle_grad paddle_args=t.I.b.b.f
    paddle_flops=3n paddle_any_axis
std_mean var_mean: aten torch checked flops=3n kind=reduction
sum: aten prims torch sparse Tensor builtins checked flops=1n folded kind=reduction paddle
    paddle_grad paddle_args=t.EItT.dn.b paddle_flops=1n paddle_any_axis
    rule@Tensor,torch=value.total
sum_to_size: aten Tensor checked
trace: aten torch Tensor checked flops=1n paddle paddle_grad paddle_args=t.i.i.i
var: aten prims torch Tensor checked flops=3n kind=reduction paddle paddle_grad
    paddle_args=t.I.b.b.f paddle_flops=3n paddle_any_axis
variance: paddle paddle_args=t.I.b paddle_any_axis
xor_sum: prims
"""
