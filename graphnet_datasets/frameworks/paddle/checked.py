"""Which operators of the table may run in any process, and what their arguments must be.

Most of paddle's kernels, and the bindings in front of them, trust what they are given: a dtype that
is a tensor, an axis of 2**31 or a divisor of zero ends the process. So the operators that real
graphs use stand here with the kinds of their arguments, in order, and `guards` compares every call
with them, whether it runs or only its shapes are inferred. Whatever does not stand here is
*unchecked*: it runs in processes that may be lost, or where the caller of `materialize` allows it.
`benchmarks/fuzz_operators.py` decides: a name that dies there gets a guard or leaves this list.

Kinds: t tensor, n nothing, i integer, f number, b bool, s text, d dtype, p place; lists of integers
I, of numbers F, of tensors T, empty E. Several letters are alternatives; a tensor in the place of
numbers gives them, and is read and compared as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from .operator_names import IN_PLACE
from .operators import CORE, PYTHON_OPERATORS, Operator

_KINDS = """
    abs: t | acos: t | acosh: t | add: t t | add_n: T | all: t EI b | amax: t EI b | amin: t EI b |
    angle: t | any: t EI b | arange: t t t d p | argmax: t it b b d | argmin: t it b b d |
    argsort: t i b b | as_complex: t | asin: t | asinh: t | assign: t | assign_value_: t EI d F p |
    atan2: t t | atan: t | atanh: t | batch_norm: t t t t t b f f s b b | bce_loss: t t |
    bernoulli: t | bicubic_interp: t n n n s i i i EIF s b i |
    bilinear_interp: t n n n s i i i EF s b i | bincount: t n it | bitwise_and: t t |
    bitwise_not: t | bitwise_or: t t | bitwise_xor: t t | bmm: t t | broadcast_tensors: T |
    cast: t d | ceil: t | celu: t f | channel_shuffle: t i s | cholesky: t b | clip: t fit fit |
    clip_by_norm: t i | complex: t t | concat: T it | conj: t | conv2d: t t I I s I i s |
    conv2d_transpose: t t I I EI EI s i I s | conv2d_transpose_bias: t t t I I I I s i I s |
    conv3d: t t I I s i I s | copysign: t t | cos: t | cosh: t | cross: t t i |
    cross_entropy_with_softmax: t t b b b i i | cummax: t i d | cummin: t i d | cumprod: t i b b |
    cumsum: t it b b b | deformable_conv: t t t t I I I i i i | depthwise_conv2d: t t I I s i I s |
    depthwise_conv2d_bias: t t t I I s i I s | depthwise_conv2d_transpose: t t I I EI EI s i I s |
    det: t | diag: t i fi | diag_embed: t i i i | diagonal: t i i i | digamma: t |
    distribute_fpn_proposals: t t i i i i b | divide: t t | dot: t t | dropout: t n fit b s i b |
    einsum: T s | elementwise_pow: t t | elu: t f | embedding: t t i b | equal: t t |
    equal_all: t t | erf: t | erfinv: t | exp: t | expand: t ItT | expand_as: t t Ii | expm1: t |
    eye: i i d p | fft_c2c: t I s b | fft_c2r: t I s b i | fft_r2c: t I s b b | fill: t i |
    flatten: t i i | flip: t I | floor: t | floor_divide: t t | fmax: t t | fmin: t t |
    frobenius_norm: t I b b | full: EItT fitb d p | full_: t EI fib d p |
    full_int_array: IF d p | full_like: t fitb d p | full_with_tensor: t EItT d |
    fused_softmax_mask: t t | fused_softmax_mask_upper_triangle: t | gammaincc: t t | gammaln: t |
    gather: t t it | gather_nd: t t | gaussian: ItT f f i d p | gaussian_inplace_: t f f i |
    gelu: t b | generate_proposals: t t t t t i i f f f b | greater_equal: t t | greater_than: t t |
    grid_sample: t t s s b | group_norm: t t t f i s | hardshrink: t i | hardsigmoid: t f f |
    hardswish: t | hardtanh: t f f | heaviside: t t | huber_loss: t t f | i0: t | i0e: t | i1: t |
    i1e: t | imag: t | increment: t f | index_add: t t t i | index_put: t T t b |
    index_sample: t t | index_select: t t i | instance_norm: t t t f | inverse: t | is_empty: t |
    isfinite: t | isinf: t | isnan: t | kldiv_loss: t t s b | kron: t t | l1_norm: t |
    layer_norm: t nt nt f i | leaky_relu: t f | lerp: t t t | less_equal: t t | less_than: t t |
    lgamma: t | linear_interp: t n n n s i i i EIF s b i | linspace: t t t d p | log10: t |
    log1p: t | log2: t | log: t | log_softmax: t i | logcumsumexp: t i b b b | logical_and: t t |
    logical_not: t | logical_or: t t | logical_xor: t t | logit: t i | logsigmoid: t |
    logsumexp: t EI b b | masked_fill: t t t | masked_select: t t | matmul: t t b b |
    matmul_with_flatten: t t i i | matrix_power: t i | max: t EItT b | maximum: t t |
    mean: t EItT b | mean_all: t | median: t I b s | meshgrid: T | min: t EItT b | minimum: t t |
    mish: t f | multinomial: t i b | multiply: t t | mv: t t | nansum: t I d b |
    nearest_interp: t n n n s i i i EF s b i | nms: t f | nonzero: t | norm: t i f b |
    not_equal: t t | numel: t | one_hot: t it | p_norm: t f i f b b | pad3d: t I s f s |
    pad: t I ft | pixel_shuffle: t i s | pixel_unshuffle: t i s | pool2d: t I I I b b s s b b s |
    pool3d: t I I I b b s s b b s | pow: t f | prelu: t t s s |
    prior_box: t t F EF F F b b f f f b | prod: t EItT b b | put_along_axis: t t t i s b |
    randint: it it ItT d p | randperm: it d p | real: t | reciprocal: t | reduce_as: t t |
    relu6: t | relu: t | remainder: t t | repeat_interleave: t i i i | reshape: t EItT |
    reverse: t i | rint: t | rms_norm: t t I f | rnn: t T T n t f b i i i s i b |
    roi_align: t t t i i f i b | roll: t ItT EI | round: t i | rsqrt: t | scale: t fit fi b |
    scatter: t t t b | searchsorted: t t b b | selu: t f f | send_u_recv: t t t s EItT |
    set_value_: t EItT EItT EItT EI EI EI EI IF |
    set_value_with_tensor: t t EItT EItT EItT EI EI EI | shape64: t | shape: t | sigmoid: t |
    sigmoid_cross_entropy_with_logits: t t n b i | sign: t | silu: t | sin: t | sinh: t |
    slice: t I ItT ItT I EI | softmax: t i | softplus: t f f | softshrink: t i | softsign: t |
    split: t ItT it | split_with_num: t i it | sqrt: t | square: t | squared_l2_norm: t |
    squeeze: t EItT | stack: T i | stanh: t i i | std: t I b b f | strided_slice: t I ItT ItT ItT |
    subtract: t t | sum: t EItT dn b | swiglu: t t | swish: t |
    sync_batch_norm_: t t t t t b f f s b b | take_along_axis: t t i | tan: t | tanh: t |
    tanh_shrink: t | tensor_unfold: t i i i | thresholded_relu: t i i | tile: t ItT |
    topk: t it i b b | trace: t i i i | transpose: t EI | triangular_solve: t t b b b | tril: t i |
    triu: t i | trunc: t | trunc_divide: t t | unbind: t i | unfold: t I I I I |
    uniform: ItT d fit fit i p | uniform_inplace_: t f f i i i f | unique: t b b b EI d |
    unsqueeze: t ItT | var: t I b b f | variance: t I b | where: t t t |
    yolo_box: t t I i f i b f b f
"""

_PLAIN = {
    name.strip(): tuple(kinds.split())
    for name, _, kinds in (each.partition(":") for each in _KINDS.split("|"))
}
KINDS: Mapping[str, tuple[str, ...]] = {
    CORE + name: kinds
    for name, kinds in (
        *((f"{name}_", kinds) for name, kinds in _PLAIN.items() if name in IN_PLACE),
        *_PLAIN.items(),
    )
}
"""The kinds of the arguments of each checked operator of paddle's core, by canonical name."""

_OTHERS = frozenset(
    {
        *PYTHON_OPERATORS, "paddle.Tensor.astype", "paddle.Tensor.detach", "paddle.Tensor.dtype",
        "paddle.cast", "paddle.arange", "paddle.to_tensor", "paddle.Tensor.reshape",
    }
)  # fmt: skip


def is_checked(operator: Operator) -> bool:
    """Tell whether an operator may run in any process.

    >>> from .operators import lookup
    >>> is_checked(lookup("paddle._C_ops.relu")), is_checked(lookup("paddle._C_ops.topk_grad"))
    (True, False)
    """
    return operator.name in KINDS or operator.name in _OTHERS
