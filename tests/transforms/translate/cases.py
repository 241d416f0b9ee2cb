"""A tiny call of each operator that has a rule: what it is called with, by target."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref, SliceArg


@dataclasses.dataclass(frozen=True)
class Given:
    """A tensor that a call gets: its dtype, its shape and the range of its elements."""

    dtype: str
    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of `target`."""

    target: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.target

    def sample(self) -> Sample:
        """Return the sample of this one call, which records no results."""
        inputs: list[Input] = []

        def visit(arg: Any) -> Any:
            if isinstance(arg, Given):
                middle, width = (arg.low + arg.high) / 2, (arg.high - arg.low) / 4
                statistics = Statistics(middle, width, arg.low, arg.high)
                value = Value(arg.dtype, arg.shape)
                inputs.append(Input("input", value, statistics=statistics))
                return Ref(len(inputs) - 1)
            if isinstance(arg, tuple):
                return tuple(map(visit, arg))
            if isinstance(arg, list):
                return ListArg(tuple(map(visit, arg)))
            if isinstance(arg, slice):
                return SliceArg(*map(visit, (arg.start, arg.stop, arg.step)))
            return arg

        args = visit(self.args)
        kwargs = tuple((name, visit(arg)) for name, arg in self.kwargs)
        ops = (Op(self.target, args, kwargs),)
        return Sample("test/rule", "torch", "other", tuple(inputs), ops, Ref(len(inputs)))


def f(*shape: int) -> Given:
    """A float tensor between -2 and 2."""
    return Given("float32", shape)


def positive(*shape: int) -> Given:
    """A float tensor between 0.1 and 0.9."""
    return Given("float32", shape, 0.1, 0.9)


def ints(high: int, *shape: int) -> Given:
    """Integers from 0 to `high - 1`."""
    return Given("int64", shape, 0, high - 1)


def flags(*shape: int) -> Given:
    """Booleans."""
    return Given("bool", shape, 0, 1)


def call(target: str, *args: Any, **kwargs: Any) -> Case:
    """Return the case of one call."""
    return Case(target, args, tuple(kwargs.items()))


X = f(2, 3, 4)
IMAGE = f(2, 4, 8, 8)
FLOAT64 = Named("dtype", "float64")
FUNCTIONAL = "torch.nn.functional."
METHOD = "torch.Tensor."

_SIMPLE = """
    abs asinh atan ceil cos cosh erf exp expm1 floor isfinite isinf isnan sigmoid sign sin sinh
    square tan tanh trunc atan
"""
_POSITIVE = """
    acos asin atanh digamma erfinv lgamma log log10 log1p log2 reciprocal rsqrt sqrt
"""
_ACTIVATIONS = "relu silu hardswish mish softsign logsigmoid tanhshrink relu6 selu hardsigmoid"

ELEMENTWISE = [
    *(call(f"torch.{name}", X) for name in _SIMPLE.split()),
    *(call(f"torch.{name}", positive(2, 3)) for name in _POSITIVE.split()),
    call("torch.acosh", Given("float32", (2, 3), 1.5, 3.0)),
    call("torch.conj", Given("complex64", (2, 3))),
    call("torch.exp", ints(4, 3)),
    call("torch.round", X, decimals=1),
    call("torch.neg", X),
    call("torch.logical_not", flags(3)),
    call("torch.bitwise_not", ints(9, 3)),
    call("operator.add", X, f(4)),
    call("torch.add", X, ints(3, 4), alpha=2),
    call("operator.add", ints(9, 3), 0.5),
    call("operator.sub", 1, X),
    call("torch.Tensor.sub", X, f(3, 1), alpha=0.5),
    call("torch.rsub", X, 3),
    call("operator.mul", X, 2),
    call("operator.mul", flags(3), flags(3)),
    call("operator.truediv", ints(9, 3), 4),
    call("torch.div", X, positive(4), rounding_mode="floor"),
    call("torch.div", X, positive(4), rounding_mode="trunc"),
    call("operator.floordiv", ints(9, 5), 4),
    call("operator.mod", ints(9, 5), 4),
    call("torch.pow", positive(3), 3.0),
    call("torch.Tensor.pow", X, 2),
    call("torch.pow", 2.0, X),
    call("torch.maximum", X, f(4)),
    call("torch.minimum", X, f(4)),
    call("torch.atan2", X, f(4)),
    call("operator.eq", ints(3, 5), ints(3, 5)),
    call("operator.ne", ints(3, 5), 1),
    call("operator.lt", ints(3, 5), 0.5),
    call("operator.le", X, 0),
    call("operator.gt", X, f(4)),
    call("operator.ge", ints(3, 5), f(5)),
    call("operator.and_", flags(5), flags(5)),
    call("operator.or_", ints(8, 5), ints(8, 5)),
    call("operator.xor", flags(5), flags(5)),
    call("torch.logical_and", X, flags(4)),
    call("torch.logical_or", flags(5), flags(5)),
    call("torch.logical_xor", flags(5), flags(5)),
    call("operator.abs", X),
    call("torch.where", flags(3, 1), X, -1e4),
    call("torch.Tensor.masked_fill", X, flags(4), -3.4e38),
    call("torch.clamp", X, -1, 1),
    call("torch.clamp", ints(9, 5), min=3),
    call("torch.clamp_min", X, 0.0),
    call("torch.clamp_max", X, 0.0),
    call("torch.lerp", X, f(4), 0.3),
    call("torch.addcmul", X, f(4), f(3, 1), value=0.5),
    call("torch.complex", f(3), f(3)),
    *(call(f"{FUNCTIONAL}{name}", X) for name in _ACTIVATIONS.split()),
    call(f"{FUNCTIONAL}relu", X, inplace=True),
    call(f"{FUNCTIONAL}gelu", X),
    call(f"{FUNCTIONAL}gelu", X, approximate="tanh"),
    call(f"{FUNCTIONAL}leaky_relu", X, 0.2),
    call(f"{FUNCTIONAL}elu", X),
    call(f"{FUNCTIONAL}celu", X, 1.5),
    call(f"{FUNCTIONAL}hardtanh", X, 0.0, 1.0),
    call(f"{FUNCTIONAL}softplus", X),
    call(f"{FUNCTIONAL}prelu", X, f(3)),
    call(f"{FUNCTIONAL}glu", X, 2),
    call(f"{FUNCTIONAL}softmax", X, -1),
    call("torch.softmax", X, 1, dtype=FLOAT64),
    call(f"{FUNCTIONAL}log_softmax", X, dim=-1),
    call(f"{FUNCTIONAL}dropout", X, 0.5, False),
]
LAYOUT = [
    call(f"{METHOD}contiguous", X),
    call(f"{METHOD}to", X, FLOAT64),
    call(f"{METHOD}type_as", X, ints(3, 2)),
    call(f"{METHOD}long", X),
    call(f"{METHOD}type", X, FLOAT64),
    call(f"{METHOD}copy_", X, ints(3, 4)),
    call(f"{METHOD}unfold", f(2, 9), 1, 4, 2),
    call(f"{METHOD}view", X, 2, -1),
    call(f"{METHOD}reshape", X, (4, 6)),
    call("torch.flatten", X, 1),
    call(f"{METHOD}unsqueeze", X, -1),
    call(f"{METHOD}squeeze", f(2, 1, 3), 1),
    call(f"{METHOD}transpose", X, 1, -1),
    call(f"{METHOD}t", f(2, 3)),
    call(f"{METHOD}permute", X, 2, 0, 1),
    call("torch.movedim", X, 0, -1),
    call(f"{METHOD}expand", f(2, 1, 4), -1, 3, 4),
    call(f"{METHOD}repeat", f(2, 3), 2, 1, 3),
    call("torch.repeat_interleave", X, 2, dim=1),
    call("torch.cat", [X, ints(3, 2, 1, 4)], 1),
    call("torch.stack", [f(3), f(3)], dim=-1),
    call("torch.split", X, 3, 2),
    call(f"{METHOD}split", X, [1, 3], dim=-1),
    call("torch.chunk", X, 2, -1),
    call("torch.unbind", X, 1),
    call("torch.roll", X, (1, -1), (0, 2)),
    call("torch.flip", X, (0, 2)),
    call("torch.tril", f(3, 4), 1),
    call("torch.meshgrid", f(2), f(3), indexing="xy"),
    call("torch.broadcast_tensors", f(2, 1), f(3)),
    call("torch.view_as_complex", f(3, 2)),
    call("torch.real", Given("complex64", (2, 3))),
]
INDEXING = [
    call("operator.getitem", X, (slice(None), slice(1, None), -1)),
    call("operator.getitem", X, (Ellipsis, None, slice(0, 3, 2))),
    call("operator.getitem", X, (slice(None), None, 0)),
    call("operator.getitem", X, (ints(2, 5), ints(3, 5))),
    call("operator.getitem", X, (slice(None), ints(3, 5, 1), ints(4, 2))),
    call("operator.getitem", X, (ints(2, 5), slice(None), ints(4, 5))),
    call("torch.select", X, 1, -1),
    call("operator.getitem", X, (slice(None), [0, 2])),
    call("torch.scatter_add", X, 1, ints(3, 2, 2, 4), f(2, 5, 4)),
    call("torch.narrow", X, 2, 1, 2),
    call("torch.ops.aten.slice.Tensor", X, 1, 1, 9223372036854775807),
    call("torch.gather", X, 2, ints(4, 2, 2, 3)),
    call("torch.take_along_dim", X, ints(3, 2, 2, 4), 1),
    call("torch.index_select", X, 1, ints(3, 5)),
    call("torch.Tensor.scatter", X, 1, ints(1, 2, 1, 4), f(2, 1, 4)),
    call("torch.Tensor.scatter", X, 1, ints(1, 2, 1, 4), value=3.0),
    call(f"{FUNCTIONAL}embedding", ints(5, 2, 3), f(5, 4), 0),
    call("torch.diff", f(2, 5), prepend=f(2, 1), dim=-1),
]
REDUCTIONS = [
    call("torch.mean", X, [-2, -1], True),
    call("torch.sum", flags(2, 3), 1),
    call("torch.prod", positive(2, 3), 1),
    call("torch.amax", X, (0, 2)),
    call("torch.amin", X, -1, True),
    call("torch.max", X, 1),
    call("torch.min", X, f(4)),
    call("torch.max", X),
    call("torch.argmax", X, 1),
    call("torch.argmin", X),
    call("torch.all", flags(2, 3), 1),
    call("torch.any", flags(2, 3)),
    call("torch.Tensor._is_all_true", flags(2, 3)),
    call("torch.mean", X, axis=1, keepdims=True),
    call("torch._weight_norm", f(3, 4, 2), f(3, 1, 1), 0),
    call("torch.cumsum", ints(2, 2, 3), 1),
    call("torch.cumprod", X, 1),
    call("torch.logsumexp", X, 1),
    call("torch.var", X, 1, unbiased=False),
    call("torch.std", X, (0, 1)),
    call("torch.norm", X, 2, 1),
    call(f"{FUNCTIONAL}normalize", X, dim=-1),
    call("torch.topk", f(2, 9), 3),
    call("torch.argsort", f(2, 9), descending=True),
    call("torch.sort", f(2, 9)),
    call("torch.cdist", f(4, 3), f(5, 3)),
]
CREATION = [
    call("torch.zeros", 2, 3),
    call("torch.ones", (2,), dtype=Named("dtype", "int64")),
    call("torch.full", (2, 3), 0.5),
    call(f"{METHOD}new_full", X, (2,), 7),
    call(f"{METHOD}new_ones", X, (), dtype=Named("dtype", "bool")),
    call("torch.zeros_like", X),
    call("torch.ones_like", ints(3, 2)),
    call("torch.full_like", ints(3, 2), 15),
    call("torch.as_tensor", X, dtype=FLOAT64),
    call("torch.arange", 1, 9, 2),
    call("torch.linspace", 0, 1, 7),
    call("torch.tensor", [1.0, 2.5]),
    call("torch.tensor", 3),
    call("torch.eye", 3, 4),
    call(f"{FUNCTIONAL}one_hot", ints(4, 5), 4),
]
NETWORKS = [
    call(f"{FUNCTIONAL}layer_norm", X, (3, 4), f(3, 4), f(3, 4), 1e-3),
    call(f"{FUNCTIONAL}layer_norm", X, (4,)),
    call(f"{FUNCTIONAL}rms_norm", X, (4,), f(4), 1e-6),
    call(f"{FUNCTIONAL}batch_norm", IMAGE, f(4), positive(4), f(4), f(4), False, 0.1, 1e-5),
    call(f"{FUNCTIONAL}group_norm", IMAGE, 2, f(4), f(4)),
    call(f"{FUNCTIONAL}instance_norm", IMAGE, weight=f(4), bias=f(4)),
    call("torch.conv1d", f(2, 3, 9), f(4, 3, 3), f(4), 2, 1),
    call("torch.conv2d", IMAGE, f(6, 2, 3, 3), f(6), (2, 1), (1, 0), (1, 2), 2),
    call("torch.conv2d", IMAGE, f(6, 4, 4, 4), None, 1, "same"),
    call("torch.conv3d", f(1, 2, 4, 5, 6), f(3, 2, 2, 3, 3), f(3), 1, (0, 1, 1)),
    call("torch.conv_transpose1d", f(2, 3, 5), f(3, 4, 4), f(4), 2, 1),
    call("torch.conv_transpose2d", IMAGE, f(4, 3, 3, 3), None, 2, 1, 1, 1, 1),
    call(f"{FUNCTIONAL}max_pool2d", IMAGE, 3, 2, 1),
    call(f"{FUNCTIONAL}max_pool1d", f(2, 3, 8), 2),
    call(f"{FUNCTIONAL}max_pool2d", IMAGE, 3, 2, ceil_mode=True),
    call(f"{FUNCTIONAL}avg_pool2d", IMAGE, 3, 2, 1, count_include_pad=False),
    call(f"{FUNCTIONAL}avg_pool2d", IMAGE, 2),
    call(f"{FUNCTIONAL}avg_pool2d", IMAGE, 3, 1, 1),
    call(f"{FUNCTIONAL}adaptive_avg_pool2d", IMAGE, (3, 1)),
    call("torch.adaptive_avg_pool1d", f(2, 3, 7), 3),
    call(f"{FUNCTIONAL}interpolate", IMAGE, scale_factor=2, mode="nearest"),
    call(f"{FUNCTIONAL}interpolate", IMAGE, (5, 11), mode="bilinear", align_corners=False),
    call(f"{FUNCTIONAL}interpolate", IMAGE, (5, 11), mode="bilinear", align_corners=True),
    call(f"{FUNCTIONAL}interpolate", IMAGE, (5, 11), mode="bicubic", align_corners=False),
    call(f"{FUNCTIONAL}interpolate", f(1, 2, 5), size=8, mode="linear"),
    call(f"{FUNCTIONAL}pad", IMAGE, (1, 2, 0, 3), "constant", 0.5),
    call(f"{FUNCTIONAL}pad", IMAGE, (1, 2, 3, 1), mode="reflect"),
    call(f"{FUNCTIONAL}pad", f(2, 3, 5), (1, 2), mode="replicate"),
    call("torch.pixel_shuffle", IMAGE, 2),
    call("torch.pixel_unshuffle", IMAGE, 2),
    call("torch.channel_shuffle", IMAGE, 2),
    call(f"{FUNCTIONAL}unfold", IMAGE, 3, padding=1, stride=2),
    call(f"{FUNCTIONAL}grid_sample", IMAGE, f(2, 5, 5, 2), align_corners=False),
]
_LSTM = [f(8, 3), f(8, 2), f(8), f(8)]
_GRU = [f(6, 3), f(6, 2), f(6), f(6)]
PRODUCTS = [
    call(f"{FUNCTIONAL}linear", X, f(5, 4), f(5)),
    call("torch.matmul", X, f(4, 5)),
    call("torch.bmm", X, f(2, 4, 5)),
    call("operator.matmul", f(4), f(4, 3)),
    call("torch.outer", f(3), f(4)),
    call("torch.addmm", f(5), f(3, 4), f(4, 5), beta=0.5, alpha=2),
    call("torch.einsum", "bij,bjk->bik", X, f(2, 4, 5)),
    call("torch.einsum", "...ij,jk->...ik", X, f(4, 5)),
    call("torch.einsum", "...AB,...Bc->...Ac", X, f(2, 4, 5)),
    call("torch.einsum", "bij, bjk", X, f(2, 4, 5)),
    call(f"{FUNCTIONAL}scaled_dot_product_attention", f(1, 2, 5, 4), f(1, 2, 6, 4), f(1, 2, 6, 4),
         attn_mask=f(5, 6), scale=0.3),
    call(f"{FUNCTIONAL}scaled_dot_product_attention", f(1, 4, 5, 4), f(1, 2, 5, 4), f(1, 2, 5, 4),
         is_causal=True, enable_gqa=True),
    call(f"{FUNCTIONAL}multi_head_attention_forward", f(5, 2, 4), f(6, 2, 4), f(6, 2, 4), 4, 2,
         f(12, 4), f(12), None, None, False, 0.0, f(4, 4), f(4), training=False,
         need_weights=False, attn_mask=f(5, 6)),
    call("torch._transformer_encoder_layer_fwd", f(2, 5, 4), 4, 2, f(12, 4), f(12), f(4, 4), f(4),
         True, False, 1e-5, f(4), f(4), f(4), f(4), f(8, 4), f(8), f(4, 8), f(4)),
    call("torch.fft.rfft", f(2, 7), 10),
    call("torch.fft.irfft", Given("complex64", (2, 6)), 9),
    call("torch.fft.fft2", X),
    call("torch.lstm", f(2, 5, 3), (f(1, 2, 2), f(1, 2, 2)), _LSTM, True, 1, 0.0, False, False,
         True),
    call("torch.gru", f(5, 2, 3), f(2, 2, 2), _GRU * 2, True, 1, 0.0, False, True, False),
    call("torch.rnn_tanh", f(5, 2, 3), f(1, 2, 2), [f(2, 3), f(2, 2)], False, 1, 0.0, False, False,
         False),
    call("torch.gru_cell", f(2, 3), f(2, 2), *_GRU),
    call("torch.lstm_cell", f(2, 3), [f(2, 2), f(2, 2)], *_LSTM),
]  # fmt: skip
CASES = [
    *ELEMENTWISE, *LAYOUT, *INDEXING, *REDUCTIONS, *CREATION, *NETWORKS, *PRODUCTS,
]  # fmt: skip
