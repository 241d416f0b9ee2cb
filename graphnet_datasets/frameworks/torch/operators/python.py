"""Python operators, scalar mathematics, state operators and second names: reviewed data.

Aliases bring the names under which different versions of torch print one function to one canonical
name, so that hashes do not move with the version.
"""

from __future__ import annotations

from collections.abc import Mapping

from .words import words

OPERATOR = words(
    """
    abs add and_ eq floordiv ge getitem gt iadd iand ifloordiv ilshift imatmul imod imul index
    invert ior ipow irshift is_ is_not isub itruediv ixor le lshift lt matmul mod mul ne neg
    not_ or_ pos pow rshift setitem sub truediv truth xor
    """
)
"""`operator.X`: what Python's operators, subscripts and augmented assignments call."""

MATH = words(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees erf erfc exp exp2
    expm1 fabs floor fmod fsum gamma gcd hypot isclose isfinite isinf isnan isqrt lcm ldexp
    lgamma log log10 log1p log2 pow radians remainder sin sinh sqrt tan tanh trunc
    """
)
"""`math.X` on symbolic scalars; nothing whose result grows beyond a machine word."""

BUILTINS = words("abs bool complex float int len max min pow round sum")
"""`builtins.X` on symbolic scalars."""

STATE = words(
    """
    torch._C._log_api_usage_once torch._C._set_grad_enabled
    torch._functorch.predispatch._add_batch_dim torch._functorch.predispatch._remove_batch_dim
    torch._functorch.predispatch._vmap_decrement_nesting
    torch._functorch.predispatch._vmap_increment_nesting
    torch._functorch.predispatch.lazy_load_decompositions
    torch.amp.autocast_mode._enter_autocast torch.amp.autocast_mode._exit_autocast
    torch.autograd.grad_mode._enter_inference_mode torch.autograd.grad_mode._exit_inference_mode
    """
)
"""Operators that change how later ones run; they survive though nothing uses their values."""

GRAD_MODE = "torch._C._set_grad_enabled"
VMAP = "torch._functorch.predispatch._vmap_increment_nesting"

PAIRS: Mapping[str, str] = {
    "torch.amp.autocast_mode._enter_autocast": "torch.amp.autocast_mode._exit_autocast",
    "torch.autograd.grad_mode._enter_inference_mode": (
        "torch.autograd.grad_mode._exit_inference_mode"
    ),
    VMAP: "torch._functorch.predispatch._vmap_decrement_nesting",
}
"""What opens a region and what closes it; a graph must close what it opens."""

_VF_WRAPPED = words(
    """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist
    chain_matmul einsum meshgrid norm split stft tensordot unique_consecutive
    """
)
"""Names whose form in `torch._VF` takes other arguments than `torch.X`."""

_FUNCTIONAL = words(
    """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors
    cartesian_prod cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft
    svd_lowrank tensordot unique unique_consecutive unravel_index
    """
)

_PREDISPATCH = "torch._functorch.predispatch"
ALIASES: Mapping[str, str] = {
    "torch._C._nn.log_sigmoid": "torch.nn.functional.logsigmoid",
    "torch.nn.functional._max_pool1d": "torch.nn.functional.max_pool1d",
    "torch.nn.functional._max_pool2d": "torch.nn.functional.max_pool2d",
    "torch.nn.functional._max_pool3d": "torch.nn.functional.max_pool3d",
    "torch.nn.functional._threshold": "torch.nn.functional.threshold",
    "torch._C._sparse._sparse_addmm": "torch.sparse.addmm",
    "torch._C._sparse._sparse_mm": "torch.sparse.mm",
    "torch._C._sparse._spsolve": "torch.sparse.spsolve",
    "torch._C._sparse.sparse_sampled_addmm": "torch.sparse.sampled_addmm",
    "torch._C._functorch._add_batch_dim": f"{_PREDISPATCH}._add_batch_dim",
    "torch._C._functorch._remove_batch_dim": f"{_PREDISPATCH}._remove_batch_dim",
    "torch._C._functorch._vmap_increment_nesting": f"{_PREDISPATCH}._vmap_increment_nesting",
    "torch._C._functorch._vmap_decrement_nesting": f"{_PREDISPATCH}._vmap_decrement_nesting",
    "torch._functorch.vmap._add_batch_dim": f"{_PREDISPATCH}._add_batch_dim",
    "torch._functorch.vmap._remove_batch_dim": f"{_PREDISPATCH}._remove_batch_dim",
    "torch._functorch.vmap._vmap_increment_nesting": f"{_PREDISPATCH}._vmap_increment_nesting",
    "torch._functorch.vmap._vmap_decrement_nesting": f"{_PREDISPATCH}._vmap_decrement_nesting",
    "torch._functorch.vmap.lazy_load_decompositions": f"{_PREDISPATCH}.lazy_load_decompositions",
    "torch.amp._enter_autocast": "torch.amp.autocast_mode._enter_autocast",
    "torch.amp._exit_autocast": "torch.amp.autocast_mode._exit_autocast",
    "torch.Tensor.__abs__": "torch.Tensor.abs",
    "torch.Tensor.__idiv__": "torch.Tensor.__itruediv__",
    "torch.Tensor.__neg__": "torch.Tensor.neg",
    "torch.Tensor.__pos__": "torch.Tensor.positive",
    "torch.Tensor.__rdiv__": "torch.Tensor.__rtruediv__",
    "torch._C._autograd._get_data_attr": "torch.Tensor.detach",  # how dynamo writes `.data`
    "torch._refs.tensor": "torch.tensor",  # and `torch.tensor` of sizes that are symbols
    "torch._sym_sqrt": "torch.sym_sqrt",
    "torch.dsmm": "torch.mm",
    "torch.saddmm": "torch.sspaddmm",
    "torch.spmm": "torch.mm",
}

RANDOM = words(
    """
    _efficient_attention_forward _flash_attention_forward _fused_dropout _philox_normal_
    _sample_dirichlet _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _standard_gamma alpha_dropout alpha_dropout_
    bernoulli bernoulli_ binomial cauchy cauchy_ dropout dropout1d dropout2d dropout3d dropout_
    exponential exponential_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout
    feature_dropout_ fractional_max_pool2d fractional_max_pool2d_with_indices
    fractional_max_pool3d fractional_max_pool3d_with_indices geometric geometric_ gru
    gumbel_softmax lobpcg log_normal log_normal_ lstm multi_head_attention_forward multinomial
    native_dropout normal normal_ normal_functional pca_lowrank poisson rand rand_like randint
    randint_like randn randn_like random random_ randperm rnn_relu rnn_tanh rrelu rrelu_
    rrelu_with_noise rrelu_with_noise_ rrelu_with_noise_functional scaled_dot_product_attention
    svd_lowrank uniform uniform_
    """
)
"""Last parts of the names of operators that may draw random numbers."""

ATEN_OUT_OVERLOADS = words(
    """
    L OutScalar_Other OutScalar_Self OutTensor Q U X a dim_max dim_min dim_values dimname_values
    dimname_values_stable eigenvalues eigvals grad_input inverse names_dim_max names_dim_min
    names_dim_values out_ out_mode out_rcond_tensor out_tol_tensor output result sign values
    values_stable
    """
)
"""Overloads that write to an `out` argument though their name does not end in `out`."""

INPLACE_POSITION: Mapping[str, int] = {
    "alpha_dropout": 3,
    "celu": 2,
    "dropout": 3,
    "dropout1d": 3,
    "dropout2d": 3,
    "dropout3d": 3,
    "elu": 2,
    "feature_alpha_dropout": 3,
    "hardsigmoid": 1,
    "hardswish": 1,
    "hardtanh": 3,
    "leaky_relu": 2,
    "mish": 1,
    "relu": 1,
    "relu6": 1,
    "rrelu": 4,
    "selu": 1,
    "silu": 1,
    "threshold": 3,
}
"""`torch.nn.functional.X` with an argument `inplace`, and where it stands."""

TRAINING_POSITION: Mapping[str, int] = {
    "torch.nn.functional.alpha_dropout": 2,
    "torch.nn.functional.dropout": 2,
    "torch.nn.functional.dropout1d": 2,
    "torch.nn.functional.dropout2d": 2,
    "torch.nn.functional.dropout3d": 2,
    "torch.nn.functional.feature_alpha_dropout": 2,
    "torch.nn.functional.rrelu": 3,
    "torch.dropout": 2,
    "torch.alpha_dropout": 2,
    "torch.feature_dropout": 2,
    "torch.feature_alpha_dropout": 2,
}
"""Random operators with an argument `training`, without which they draw nothing."""


def functional_alias(name: str) -> str | None:
    """Return the public name of `torch.functional.X`, `torch._VF.X` and the like, or None."""
    namespace, _, last = name.rpartition(".")
    if namespace == "torch.functional" and last in _FUNCTIONAL:
        return f"torch.{last}"
    if namespace in (
        "torch._VF",
        "torch._C._VariableFunctions",
        "torch._C._VariableFunctionsClass",
    ):
        return None if last in _VF_WRAPPED else f"torch.{last}"
    for private, prefix, public in _PRIVATE_NAMESPACES:
        if namespace == private and last.startswith(prefix):
            return f"{public}.{last.removeprefix(prefix)}"
    if namespace == "_operator":
        return f"operator.{last}"
    return None


_PRIVATE_NAMESPACES = (
    ("torch._C._linalg", "linalg_", "torch.linalg"),
    ("torch._C._fft", "fft_", "torch.fft"),
    ("torch._C._special", "special_", "torch.special"),
)
