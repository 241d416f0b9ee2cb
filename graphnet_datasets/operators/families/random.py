"""Operators that draw random numbers."""

ENTRIES = """
alpha_dropout: aten* torch* functional random* inplace_flag=3 drop_rate=1 kind=pointwise shares
    training_flag@functional,torch=2 canonical=0
bernoulli: aten* torch Tensor* random* checked flops*=0 only_writes_ paddle paddle_random
    paddle_args=t
binomial poisson: aten torch random paddle paddle_random
cauchy geometric log_normal: aten* Tensor_ random*
class_center_sample dirichlet fused_dropout_add shuffle_batch standard_gamma top_p_sampling
    truncated_gaussian_random: paddle paddle_random
dropout: aten* torch* functional random* checked inplace_flag=3 drop_rate=1 flops=0 kind=pointwise
    passes_on shares paddle* paddle_grad paddle_random* paddle_args=t.n.fit.b.s.i.b paddle_flops=0
    training_flag@functional,torch=2 rule@functional=element.dropout canonical=0
dropout1d dropout3d: functional random checked inplace_flag=3 drop_rate=1 kind=pointwise shares
    training_flag@functional=2 canonical=0
dropout2d: functional random checked inplace_flag=3 drop_rate=1 kind=pointwise shares
    training_flag@functional=2 rule@functional=element.dropout_of_channels canonical=0
exponential: aten* Tensor_ random* flops_=0 only_writes_ paddle_ paddle_random*
feature_alpha_dropout: aten* torch* functional random* inplace_flag=3 drop_rate=1 shares
    training_flag@functional,torch=2 canonical=0
feature_dropout: aten* torch* random* drop_rate=1 kind=pointwise shares training_flag@torch=2
    canonical=0
_fused_dropout: aten torch random flops=pointwise
gaussian: literals=create.0.0.shape shape_taking paddle paddle_random paddle_args=ItT.f.f.i.d.p
gaussian_inplace: paddle* paddle_random* paddle_args_=t.f.f.i
gumbel_softmax: functional random paddle paddle_random
multinomial: aten torch Tensor random flops=0 paddle paddle_random paddle_args=t.it.b
native_dropout: aten torch random drop_rate=1 flops=pointwise kind=pointwise shares canonical=0
normal: aten* prims torch Tensor_ random* checked flops*=0 only_writes_
normal_functional: aten random checked
_philox_normal: random_
rand randn: aten torch random checked factory flops=0 sized literals=create.0.64.size.shape.sizes
rand_like randn_like: aten torch random checked flops=0 elementless
randint: aten torch random checked factory flops=0 literals=create.2.2.size shape_taking paddle
    paddle_random paddle_args=it.it.ItT.d.p
randint_like: aten torch random checked flops=0
random: aten* Tensor_ random* checked flops*=0 only_writes_ paddle* paddle_random*
randperm: aten torch random checked factory flops=0 literals=create.0.0.n paddle paddle_random
    paddle_args=it.d.p
rrelu: aten* torch* functional functional_is_torch_ random* inplace_flag=4 paddle paddle_grad
    paddle_random training_flag@functional,torch=3
rrelu_with_noise: aten* C_nn* random* writes flops=pointwise
rrelu_with_noise_functional: aten random
_sample_dirichlet _standard_gamma: aten torch random
uniform: aten* prims Tensor_ random* checked flops*=0 only_writes_ literals=create.0.0.shape
    shape_taking paddle paddle_random paddle_args=ItT.d.fit.fit.i.p
uniform_inplace: paddle* paddle_random* paddle_args_=t.f.f.i.i.i.f
"""
