"""Size checks and results of recurrent layers, without unrolling them.

`torch.lstm` and similar operators loop over time. On fake tensors each step takes a dozen calls, so
a vocoder with 20,000 steps would take minutes to walk. The result shapes follow from the operands,
and the cost grows linearly with the steps. The kernels, including oneDNN's, do not check the sizes
of hidden states and weights; `torch.nn` checks them before the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ....errors import MaterializeError

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
_NAMES = (
    "input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional",
    "batch_first",
)  # fmt: skip
WALKED_STEPS = (4, 8)
"""Step counts at which longer loops are walked; the cost of the rest is extrapolated."""


class Layer(NamedTuple):
    """The checked operands of a recurrent layer call."""

    kind: str
    input: torch.Tensor
    states: tuple[torch.Tensor, ...]
    params: tuple[torch.Tensor, ...]
    has_biases: bool
    num_layers: int
    bidirectional: bool
    batch_first: bool
    rest: tuple[float, bool]

    @property
    def steps(self) -> int:
        """The sequence length."""
        return self.input.shape[self._time_axis]

    @property
    def _time_axis(self) -> int:
        return 1 if self.batch_first and self.input.dim() == 3 else 0

    def arguments(self, steps: int) -> tuple[Any, ...]:
        """Return the arguments of the same call on the first `steps` steps."""
        hx = list(self.states) if self.kind == "lstm" else self.states[0]
        return (
            self.input.narrow(self._time_axis, 0, steps), hx, list(self.params), self.has_biases,
            self.num_layers, *self.rest, self.bidirectional, self.batch_first,
        )  # fmt: skip


def kind_of(name: str) -> str | None:
    """Return the kind of recurrent layer an operator computes, or None.

    >>> kind_of("torch.lstm"), kind_of("torch.ops.aten.gru.input"), kind_of("torch.lstm_cell")
    ('lstm', 'gru', None)
    """
    for prefix in ("torch.ops.aten.", "torch."):
        if name.startswith(prefix):
            last = name.removeprefix(prefix).removesuffix(".input").removesuffix(".data")
            return last if last in _GATES else None
    return None


def read_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Layer:
    """Return the operands of a recurrent layer call after checking their sizes.

    Raises:
        MaterializeError: If sizes do not match or are unknown, or the sequence is packed.
    """
    kind = kind_of(name) or ""
    if len(args) > len(_NAMES) or not set(kwargs) <= set(_NAMES):
        raise MaterializeError(f"Expected the arguments {', '.join(_NAMES)}.")
    arguments = dict(zip(_NAMES, args, strict=False)) | dict(kwargs)
    if len(arguments) != len(_NAMES):
        raise MaterializeError(f"Expected the arguments {', '.join(_NAMES)}.")
    states = (
        tuple(arguments["hx"])
        if kind == "lstm" and _is_list(arguments["hx"])
        else (arguments["hx"],)
    )
    params = tuple(arguments["params"]) if _is_list(arguments["params"]) else ()
    tensors = (arguments["input"], *states, *params)
    flags = [arguments[flag_name] for flag_name in ("has_biases", "bidirectional", "batch_first")]
    layers = arguments["num_layers"]
    if (
        not all(map(_is_known, tensors))
        or not all(type(flag) is bool for flag in flags)
        or type(layers) is not int
        or not 0 < layers <= 1000
        or name.endswith(".data")
    ):
        raise MaterializeError(
            "Expected tensors of known shapes, boolean flags and 1 to 1000 layers, for a sequence "
            "that is not packed."
        )
    rest = arguments["dropout"], arguments["train"]
    layer = Layer(
        kind, arguments["input"], states, params, flags[0], layers, flags[1], flags[2], rest
    )
    _check(layer)
    return layer


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_known(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and all(type(size) is int for size in tensor.shape)


def _check(layer: Layer) -> None:
    directions = 2 if layer.bidirectional else 1
    if len(layer.states) != (2 if layer.kind == "lstm" else 1):
        raise MaterializeError(
            f"Expected {2 if layer.kind == 'lstm' else 1} hidden states for a `{layer.kind}`, got "
            f"{len(layer.states)}."
        )
    rank = layer.input.dim()
    if rank not in (2, 3) or 0 in layer.input.shape:
        raise MaterializeError(
            f"Expected a non-empty 2-D or 3-D input, got shape {list(layer.input.shape)}."
        )
    batch = () if rank == 2 else (layer.input.shape[0 if layer.batch_first else 1],)
    cells = layer.num_layers * directions
    hidden = layer.states[-1].shape[-1] if layer.states[-1].dim() else 0
    output = layer.states[0].shape[-1] if layer.states[0].dim() else 0
    for state, size in zip(layer.states, (output, hidden), strict=False):
        if tuple(state.shape) != (cells, *batch, size) or size == 0:
            raise MaterializeError(
                f"Expected a non-empty hidden state of shape {[cells, *batch, size]}, got "
                f"{list(state.shape)}."
            )
    wanted = list(_weight_shapes(layer, cells, directions, hidden, output))
    shapes = [tuple(param.shape) for param in layer.params]
    if shapes != wanted:
        at = next(
            (i for i, (a, b) in enumerate(zip(shapes, wanted, strict=False)) if a != b),
            min(len(shapes), len(wanted)),
        )
        raise MaterializeError(
            f"Expected {len(wanted)} weights with weight {at} of shape {_shown(wanted, at)}, got "
            f"{len(shapes)} weights with {_shown(shapes, at)}."
        )
    kinds = {
        (tensor.dtype, tensor.device) for tensor in (layer.input, *layer.states, *layer.params)
    }
    if len(kinds) != 1:
        raise MaterializeError(
            "Expected input, states and weights to have the same dtype and be on the same device."
        )


def _weight_shapes(layer: Layer, cells: int, directions: int, hidden: int, output: int) -> Any:
    """Yield the weight shapes of each cell in order: input, state, biases, projection."""
    rows = _GATES[layer.kind] * hidden
    is_projected = hidden != output
    for cell in range(cells):
        fed = layer.input.shape[-1] if cell < directions else output * directions
        yield rows, fed
        yield rows, output
        if layer.has_biases:
            yield (rows,)
            yield (rows,)
        if is_projected:
            yield output, hidden


def _shown(shapes: list[Any], at: int) -> str:
    return str(list(shapes[at])) if at < len(shapes) else "none"


def make_results(layer: Layer) -> tuple[torch.Tensor, ...]:
    """Return tensors with the shapes of a layer's results: all outputs, and the final states."""
    directions = 2 if layer.bidirectional else 1
    shape = (*layer.input.shape[:-1], layer.states[0].shape[-1] * directions)
    output = layer.input.new_empty(shape)
    if layer.batch_first and layer.input.dim() == 3:
        output = output.new_empty((shape[1], shape[0], shape[2])).transpose(0, 1)
    return (output, *(state.new_empty(state.shape) for state in layer.states))
