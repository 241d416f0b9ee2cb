"""Elementwise operators of one or two tensors."""

ENTRIES = """
abs: aten* prims torch* Tensor* operator builtins foreach* checked folded kind=pointwise moving
    paddle* paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.rounded
    computed@Tensor,torch
absolute arctan2: aten* torch Tensor* checked
acos asin atan cosh log10 log2 sinh tan: aten* prims torch* Tensor* math foreach* checked
    kind=pointwise paddle* paddle_grad paddle_args=t paddle_flops=pointwise
acosh asinh atanh: aten* prims torch* Tensor* math checked kind=pointwise paddle* paddle_grad
    paddle_args=t paddle_flops=pointwise
add: aten* prims torch Tensor* operator foreach* checked folded kind=pointwise passes_on
    number_operands box_columns adds paddle* paddle_grad paddle_args=t.t paddle_flops=pointwise
    paddle_broadcasts rule@Tensor,operator,torch=element.binary rule@Tensor_=element.binary_in_place
    computed@Tensor,operator,torch beside@Tensor*,operator,torch
add_n: paddle paddle_args=T paddle_flops=pointwise canonical=add
add_position_encoding fused_bias_act fused_elementwise_add fused_elementwise_div
    fused_elementwise_mul fused_elementwise_sub: paddle
_add_relu: aten* torch*
addcdiv addcmul: aten* torch Tensor* foreach* checked flops=pointwise kind=pointwise
_addmm_activation: aten torch Tensor
affine_channel: paddle* paddle_grad
angle: aten torch Tensor checked paddle paddle_grad paddle_args=t paddle_flops=pointwise
arccos arccosh arcsin arcsinh arctan arctanh fix: aten* torch* Tensor* checked
assign: kind=pointwise shares moving linear_in_weight box_columns in_order paddle* paddle_grad
    paddle_args=t paddle_flops=0 canonical=0
assign_out: paddle_
atan2: aten* prims torch Tensor* math checked kind=pointwise paddle paddle_grad paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts
bitwise_and bitwise_or bitwise_xor: aten* prims torch Tensor* checked folded kind=pointwise paddle*
    paddle_args=t.t paddle_flops=pointwise paddle_broadcasts canonical=logic
bitwise_left_shift bitwise_right_shift: aten* torch Tensor* checked paddle* paddle_flops=pointwise
bitwise_not: aten* prims torch Tensor* checked folded kind=pointwise paddle* paddle_args=t
    paddle_flops=pointwise canonical=logic
cbrt: prims math
ceil: aten* prims torch* Tensor* math foreach* checked folded kind=pointwise paddle* paddle_grad
    paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.rounded
celu: aten* torch* functional functional_is_torch_ checked inplace_flag=2 flops=pointwise
    kind=pointwise paddle paddle_grad paddle_args=t.f paddle_flops=pointwise
clamp: aten* torch* Tensor* checked flops=pointwise folded kind=pointwise passes_on number_operands
    moving box_columns literal_elements rule@Tensor,torch=element.clamp
clamp_max clamp_min: aten* torch* Tensor* foreach* checked flops=pointwise folded kind=pointwise
    number_operands moving box_columns literal_elements canonical=clamp
clip: aten* torch* Tensor* checked kind=pointwise number_operands moving box_columns
    literal_elements paddle* paddle_grad paddle_args=t.fit.fit paddle_flops=pointwise
    canonical=clamp
complex: aten torch builtins checked flops=0 kind=pointwise paddle paddle_grad paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts
_copy_from _nested_tensor_from_mask _pin_memory: flops=0
copysign: aten* torch Tensor* math checked kind=pointwise paddle* paddle_grad paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts
cos sin: aten* prims torch* Tensor* math foreach* checked folded kind=pointwise to_float paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.elementwise
cosine_similarity pairwise_distance: aten torch functional_is_torch checked
deg2rad negative rad2deg: aten* torch* Tensor* checked kind=pointwise
div: aten* prims torch Tensor* foreach* checked divides kind=pointwise passes_on literals*=mean.1.1
    number_operands box_columns rule@Tensor,torch=element.divide
    rule@Tensor_=element.divide_in_place computed@Tensor,torch beside@Tensor*,torch canonical=mul
divide: aten* torch Tensor* checked kind=pointwise literals=mean.1.1 to_float box_columns paddle*
    paddle_grad paddle_args=t.t paddle_flops=pointwise paddle_broadcasts canonical=mul
elementwise_pow: paddle paddle_grad paddle_args=t.t paddle_flops=pointwise paddle_broadcasts
elu: aten* functional* C_nn C_nn_is_functional_ checked inplace_flag=2 flops=pointwise
    kind=pointwise paddle* paddle_grad paddle_args=t.f paddle_flops=pointwise
eq ne: aten* prims torch Tensor* operator checked folded kind=pointwise number_operands equality
    rule@Tensor,operator=element.compare canonical=compare
erf: aten* prims torch* special Tensor* math foreach* checked kind=pointwise paddle* paddle_grad
    paddle_args=t paddle_flops=pointwise rule@torch=element.elementwise
erf_inv maximum_value minimum_value shift_left shift_right_arithmetic: prims
erfc: aten* prims torch* special Tensor* math foreach* checked kind=pointwise
erfinv: aten* torch special Tensor* checked kind=pointwise paddle* paddle_grad paddle_args=t
    paddle_flops=pointwise
exp: aten* prims torch* Tensor* math foreach* checked folded kind=pointwise to_float paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.elementwise
    computed@Tensor,torch
exp2: aten* prims torch* special Tensor* math checked kind=pointwise
expm1 log1p: aten* prims torch* special Tensor* math foreach* checked kind=pointwise paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise
floor: aten* prims torch* Tensor* math foreach* checked folded kind=pointwise paddle* paddle_grad
    paddle_args=t paddle_flops=pointwise rule@Tensor=element.rounded computed@Tensor
floor_divide: aten* torch Tensor* checked divides kind=pointwise paddle* paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts canonical=floordiv
fmax fmin: aten prims torch Tensor checked kind=pointwise paddle paddle_grad paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts
fmod: aten* prims torch Tensor* math checked divides kind=pointwise number_operands
frac: aten* torch* Tensor* foreach* checked kind=pointwise
frexp signbit: aten prims torch Tensor checked
gcd: aten* prims torch* Tensor* math
ge gt le lt: aten* prims torch Tensor* operator checked folded kind=pointwise number_operands
    ordering rule@operator=element.compare canonical=compare
gelu: aten* functional C_nn_ C_nn_is_functional checked flops=pointwise kind=pointwise paddle
    paddle_grad paddle_args=t.b paddle_flops=pointwise rule@functional=element.gelu
glu: aten functional C_nn_is_functional checked flops=pointwise rule@functional=layer.glu
    canonical=sigmoid+mul
grad: shares
greater less: aten* torch Tensor* checked ordering canonical=compare
greater_equal less_equal: aten* torch Tensor* checked kind=pointwise ordering paddle*
    paddle_args=t.t paddle_flops=pointwise paddle_broadcasts canonical=compare
greater_than less_than: kind=pointwise ordering paddle* paddle_args=t.t paddle_flops=pointwise
    paddle_broadcasts canonical=compare
hardshrink: aten torch functional_is_torch Tensor checked kind=pointwise paddle paddle_grad
    paddle_args=t.i paddle_flops=pointwise
hardsigmoid: aten* functional C_nn_ C_nn_is_functional checked inplace_flag=1 flops=pointwise
    kind=pointwise paddle paddle_grad paddle_args=t.f.f paddle_flops=pointwise
    rule@functional=element.activation canonical=clamp
hardswish: aten* functional C_nn_ C_nn_is_functional checked inplace_flag=1 flops=pointwise
    kind=pointwise paddle paddle_grad paddle_args=t paddle_flops=pointwise
    rule@functional=element.activation canonical=clamp+mul
hardtanh: aten* functional* C_nn_is_functional* checked inplace_flag=3 flops=pointwise
    kind=pointwise number_operands paddle* paddle_grad paddle_args=t.f.f paddle_flops=pointwise
    rule@functional=element.bounded canonical=clamp
heaviside: aten* torch Tensor* checked kind=pointwise paddle paddle_grad paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts
hypot: aten* prims torch Tensor* math checked kind=pointwise
iadd: operator kind=pointwise passes_on box_columns adds rule@operator=element.binary_in_place
    beside@operator canonical=add
imul: operator kind=pointwise passes_on box_columns multiplies rule@operator=element.binary_in_place
    beside@operator canonical=mul
increment: paddle* paddle_args=t.f paddle_flops=pointwise
iou_similarity: box_pairs paddle_boxes=0.x
isclose: aten torch Tensor math checked paddle paddle_flops=pointwise
isfinite: aten prims torch Tensor math checked folded kind=pointwise paddle paddle_args=t
    paddle_flops=pointwise
isnan: aten torch Tensor math checked folded kind=pointwise paddle paddle_args=t
    paddle_flops=pointwise
isneginf isposinf isreal logaddexp logaddexp2: aten torch Tensor checked
lcm: aten* torch* Tensor* math
ldexp: aten* torch* Tensor* math checked
leaky_relu: aten* functional* C_nn_is_functional* checked inplace_flag=2 flops=pointwise
    kind=pointwise number_operands paddle* paddle_grad paddle_args=t.f paddle_flops=pointwise
    rule@functional=element.sloped
lerp: aten* torch Tensor* foreach* checked flops=pointwise kind=pointwise paddle* paddle_grad
    paddle_args=t.t.t paddle_flops=pointwise paddle_broadcasts
log sqrt: aten* prims torch* Tensor* math foreach* checked folded kind=pointwise needs_positive
    paddle* paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.elementwise
    computed@Tensor,torch
log_sigmoid: aten checked kind=pointwise
log_sigmoid_forward: aten checked flops=pointwise
logical_and logical_or logical_xor: aten* torch Tensor* checked folded kind=pointwise paddle*
    paddle_args=t.t paddle_flops=pointwise paddle_broadcasts canonical=logic
logical_not: aten* torch Tensor* checked folded kind=pointwise paddle* paddle_args=t
    paddle_flops=pointwise canonical=logic
logit: aten* torch* special Tensor* checked kind=pointwise paddle* paddle_grad paddle_args=t.i
    paddle_flops=pointwise
logsigmoid softsign: functional checked kind=pointwise paddle paddle_grad paddle_args=t
    paddle_flops=pointwise
matmul_with_flatten: paddle paddle_grad paddle_args=t.t.i.i
maximum minimum: aten prims torch Tensor foreach* checked folded kind=pointwise number_operands
    box_columns paddle paddle_grad paddle_args=t.t paddle_flops=pointwise paddle_broadcasts
    rule@torch=element.extreme beside@torch
maxout: paddle paddle_grad paddle_flops=pointwise
mish: aten* functional C_nn_ C_nn_is_functional checked inplace_flag=1 flops=pointwise
    kind=pointwise paddle paddle_grad paddle_args=t.f paddle_flops=pointwise
    rule@functional=element.activation
mul: aten* prims torch Tensor* operator foreach* checked folded kind=pointwise passes_on
    number_operands proportional box_columns multiplies rule@Tensor,operator,torch=element.binary
    rule@Tensor_=element.binary_in_place computed@Tensor,operator,torch
    beside@Tensor*,operator,torch
multiply: aten* torch Tensor* checked kind=pointwise proportional box_columns multiplies paddle*
    paddle_args=t.t paddle_flops=pointwise paddle_broadcasts canonical=mul
nan_to_num: aten* torch* Tensor* checked flops=pointwise kind=pointwise passes_on
neg: aten* prims torch* Tensor* operator foreach* checked folded kind=pointwise linear_in_weight
    rule@Tensor,operator,torch=element.negate computed@operator,torch canonical=mul
nextafter: aten* prims torch Tensor* checked paddle paddle_flops=pointwise
not_equal: aten* torch Tensor* checked kind=pointwise equality paddle* paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts canonical=compare
polar: aten torch checked flops=0 kind=pointwise
positive: aten torch Tensor checked shares
pow: aten* prims torch Tensor* operator math builtins foreach* checked kind=pointwise
    number_operands needs_positive paddle* paddle_grad paddle_args=t.f paddle_flops=pointwise
    rule@Tensor,operator,torch=element.power rule@Tensor_=element.power_in_place
    computed@Tensor,operator,torch
powsum: foreach
prelu: aten torch functional_is_torch Tensor checked flops=pointwise kind=pointwise paddle
    paddle_grad paddle_args=t.t.s.s paddle_flops=pointwise rule@torch=element.prelu
_prelu_kernel: aten torch checked@aten flops=pointwise
radd: adds
reciprocal: aten* prims torch* Tensor* foreach* checked folded kind=pointwise needs_positive paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise canonical=mul
relu: aten* torch* functional functional_is_torch_ Tensor* checked inplace_flag=1 kind=pointwise
    box_columns keeps_shape paddle* paddle_grad paddle_args=t paddle_flops=pointwise
    rule@functional=element.activation rule@Tensor,torch=element.elementwise
relu6: aten* functional C_nn_ C_nn_is_functional checked inplace_flag=1 kind=pointwise paddle
    paddle_grad paddle_args=t paddle_flops=pointwise rule@functional=element.activation
    canonical=clamp
remainder: aten* prims torch Tensor* math checked divides kind=pointwise number_operands paddle*
    paddle_grad paddle_args=t.t paddle_flops=pointwise paddle_broadcasts
rint: paddle* paddle_grad paddle_args=t paddle_flops=pointwise
round: aten* prims torch* special Tensor* builtins foreach* checked folded kind=pointwise paddle*
    paddle_grad paddle_args=t.i paddle_flops=pointwise
rsqrt: aten* prims torch* Tensor* foreach* checked folded kind=pointwise needs_positive paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.elementwise
    computed@Tensor,torch
rsub: aten torch checked folded kind=pointwise number_operands subtracts canonical=add
scale: kind=pointwise passes_on box_columns paddle* paddle_args=t.fit.fi.b paddle_flops=pointwise
    canonical=mul
selu: aten* torch* functional functional_is_torch_ checked inplace_flag=1 kind=pointwise paddle
    paddle_grad paddle_args=t.f.f paddle_flops=pointwise
set: flops_=0 writes_part_
sgn: aten* torch Tensor* checked kind=pointwise
sigmoid: aten* torch* functional Tensor* foreach* checked folded kind=pointwise box_columns paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.elementwise
sign: aten* prims torch Tensor* foreach* checked folded kind=pointwise paddle paddle_grad
    paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.rounded
silu: aten* functional C_nn_ C_nn_is_functional checked inplace_flag=1 flops=pointwise
    kind=pointwise paddle* paddle_grad paddle_args=t paddle_flops=pointwise
    rule@functional=element.activation canonical=sigmoid+mul
sinc: aten* torch* special Tensor* checked kind=pointwise
softplus: aten functional C_nn_is_functional checked flops=pointwise kind=pointwise paddle
    paddle_grad paddle_args=t.f.f paddle_flops=pointwise rule@functional=element.softplus
softshrink: aten functional C_nn_is_functional checked flops=pointwise kind=pointwise paddle
    paddle_grad paddle_args=t.i paddle_flops=pointwise
square: aten* torch* Tensor* checked kind=pointwise paddle* paddle_grad paddle_args=t
    paddle_flops=pointwise rule@Tensor,torch=element.elementwise canonical=pow
stanh: kind=pointwise paddle paddle_grad paddle_args=t.i.i paddle_flops=pointwise
sub: aten* prims torch Tensor* operator foreach* checked folded kind=pointwise passes_on
    number_operands subtracts rule@Tensor,operator,torch=element.subtract
    rule@Tensor_=element.subtract_in_place computed@Tensor,operator,torch
    beside@Tensor*,operator,torch canonical=add
subtract: aten* torch Tensor* checked kind=pointwise subtracts paddle* paddle_grad paddle_args=t.t
    paddle_flops=pointwise paddle_broadcasts canonical=add
swiglu: paddle paddle_grad paddle_args=t.t paddle_flops=pointwise paddle_alike
swish: kind=pointwise paddle paddle_grad paddle_args=t paddle_flops=pointwise canonical=sigmoid+mul
tanh: aten* prims torch* functional Tensor* math foreach* checked folded kind=pointwise paddle*
    paddle_grad paddle_args=t paddle_flops=pointwise rule@Tensor,torch=element.elementwise
tanh_shrink: paddle paddle_grad paddle_args=t paddle_flops=pointwise
tanhshrink: functional checked kind=pointwise
tensor_unfold: paddle paddle_grad paddle_args=t.i.i.i paddle_flops=0 paddle_view
threshold: aten* torch* functional functional_is_torch_ checked inplace_flag=3 flops=pointwise
    kind=pointwise number_operands
thresholded_relu: paddle* paddle_grad paddle_args=t.i.i paddle_flops=pointwise
true_divide: aten* torch Tensor* checked divides number_operands to_float canonical=mul
truediv: operator kind=pointwise passes_on literals=mean.1.1 number_operands to_float box_columns
    rule@operator=element.divide computed@operator beside@operator canonical=mul
trunc: aten* prims torch* Tensor* math foreach* checked folded kind=pointwise paddle* paddle_grad
    paddle_args=t paddle_flops=pointwise
trunc_divide: paddle* paddle_args=t.t paddle_flops=pointwise paddle_broadcasts
unstack: moving unbinds paddle paddle_grad paddle_flops=0
_vmap_increment_nesting: literals=constant.0.0
"""
