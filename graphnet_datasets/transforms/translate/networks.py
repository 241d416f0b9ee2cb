"""Rules for activation and normalization layers."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

from typing import Any

from .elementwise import cast
from .handles import RefusedError, Tensor
from .layout import chunk
from .reductions import mean_over
from .registry import rule
from .writer import Writer, count

_PLAIN = ["relu", "silu", "hardswish", "mish", "softsign", "logsigmoid", "tanhshrink", "relu6"]
_NAMES = {"tanhshrink": "tanh_shrink"}


def _activation(name: str) -> Any:
    def write(w: Writer, input: Tensor, inplace: bool = False) -> Tensor:
        extra = (20.0,) if name == "mish" else ()  # threshold above which softplus is the identity
        return w.emit(name, input, *extra, dtype=input.dtype, shape=input.shape)

    return write


for _name in _PLAIN:
    rule(_name)(_activation(_NAMES.get(_name, _name)))


def _with(w: Writer, name: str, x: Tensor, *numbers: Any) -> Tensor:
    return w.emit(name, x, *numbers, dtype=x.dtype, shape=x.shape)


@rule("gelu")
def gelu(w: Writer, input: Tensor, *, approximate: str = "none") -> Tensor:
    return _with(w, "gelu", input, approximate == "tanh")


@rule("leaky_relu")
def leaky_relu(
    w: Writer, input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    return _with(w, "leaky_relu", input, negative_slope)


@rule("elu")
def elu(w: Writer, input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return _with(w, "elu", input, alpha)


@rule("celu")
def celu(w: Writer, input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return _with(w, "celu", input, alpha)


@rule("selu")
def selu(w: Writer, input: Tensor, inplace: bool = False) -> Tensor:
    return _with(w, "selu", input, 1.0507009873554805, 1.6732632423543772)


@rule("hardsigmoid")
def hardsigmoid(w: Writer, input: Tensor, inplace: bool = False) -> Tensor:
    return _with(w, "hardsigmoid", input, 1 / 6, 0.5)


@rule("hardtanh")
def hardtanh(
    w: Writer, input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    return _with(w, "hardtanh", input, min_val, max_val)


@rule("softplus")
def softplus(w: Writer, input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    return _with(w, "softplus", input, beta, threshold)


@rule("prelu")
def prelu(w: Writer, input: Tensor, weight: Tensor) -> Tensor:
    mode = "all" if weight.shape in ((1,), ()) else "channel"
    return _with(w, "prelu", input, weight, "NCHW", mode)


@rule("glu")
def glu(w: Writer, input: Tensor, dim: int = -1) -> Tensor:
    value, gate = chunk(w, input, 2, dim)
    return w.binary("multiply", value, _with(w, "sigmoid", gate))


@rule("softmax", "log_softmax", "torch.special.softmax", "torch.special.log_softmax")
def softmax(
    w: Writer, input: Tensor, dim: Any = None, *rest: Any, dtype: Any = None, **_: Any
) -> Tensor:
    if dim is None:
        raise RefusedError("Its dimension is missing.")
    x = input if dtype is None else cast(w, input, dtype)
    return _with(w, w.target.rpartition(".")[2], x, x.axis(dim))


@rule("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout",
      "feature_alpha_dropout")  # fmt: skip
def dropout(
    w: Writer, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False,
    *, train: bool = True,
) -> Tensor:  # fmt: skip
    if p and training and train:
        raise RefusedError("It draws random numbers.")
    return input


@rule("layer_norm")
def layer_norm(
    w: Writer,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    begin = input.ndim - len(normalized_shape)
    flat = [
        None if parameter is None else w.reshape(parameter, (count(parameter.shape),))
        for parameter in (weight, bias)
    ]
    return w.emit_first(
        "layer_norm", input, *flat, eps, begin, dtype=input.dtype, shape=input.shape, number=3
    )


@rule("rms_norm")
def rms_norm(
    w: Writer, input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: Any = None
) -> Tensor:
    axes = list(range(input.ndim - len(normalized_shape), input.ndim))
    wide = w.cast(input, "float32") if input.dtype in ("float16", "bfloat16") else input
    square = w.emit("square", wide, dtype=wide.dtype, shape=wide.shape)
    epsilon = {"float64": 2.220446049250313e-16}.get(wide.dtype, 1.1920928955078125e-07)
    shifted = w.scale(mean_over(w, square, axes, True), 1.0, epsilon if eps is None else eps)
    factor = w.emit("rsqrt", shifted, dtype=wide.dtype, shape=shifted.shape)
    scaled = w.cast(w.binary("multiply", wide, factor), input.dtype)
    return scaled if weight is None else w.binary("multiply", scaled, weight)


@rule("batch_norm")
def batch_norm(
    w: Writer,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *_: Any,
) -> Tensor:
    if training or running_mean is None or running_var is None:
        raise RefusedError(
            "It normalizes with batch statistics and updates its running statistics."
        )
    ones, zeros = ((input.shape[1],), 1.0), ((input.shape[1],), 0.0)
    scale = w.full(*ones, running_mean.dtype) if weight is None else weight
    shift = w.full(*zeros, running_mean.dtype) if bias is None else bias
    return w.emit_first(
        "batch_norm", input, running_mean, running_var, scale, shift, True, 1 - momentum, eps,
        "NCHW", False, False, dtype=input.dtype, shape=input.shape, number=6,
    )  # fmt: skip


@rule("group_norm")
def group_norm(
    w: Writer,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    return w.emit_first(
        "group_norm", input, weight, bias, eps, num_groups, "NCHW",
        dtype=input.dtype, shape=input.shape, number=3,
    )  # fmt: skip


@rule("instance_norm")
def instance_norm(
    w: Writer,
    input: Tensor,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *_: Any,
) -> Tensor:
    if not use_input_stats:
        return batch_norm(w, input, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None:
        raise RefusedError("It updates its running statistics.")
    x = input
    if x.ndim == 3:
        x = w.reshape(x, (*x.shape, 1))
    result = w.emit_first(
        "instance_norm", x, weight, bias, eps, dtype=x.dtype, shape=x.shape, number=3
    )
    return w.reshape(result, input.shape)
