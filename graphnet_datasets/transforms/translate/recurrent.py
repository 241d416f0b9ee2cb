"""Rules for recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...sample import Value
from .elementwise import arithmetic
from .handles import RefusedError, Tensor
from .layout import split_into
from .linear import linear
from .registry import rule
from .writer import Writer


@rule("torch.lstm", "torch.gru", "torch.rnn_tanh", "torch.rnn_relu")
def recurrent(
    w: Writer,
    input: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Write a recurrent network; paddle orders the weights as all matrices, then all biases."""
    kind = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}
    mode = kind[w.target.rpartition(".")[2]]
    states = [hx] if isinstance(hx, Tensor) else list(hx)
    if (train and dropout) or input.ndim != 3 or states[0].dtype != input.dtype:
        raise RefusedError("Dropout, and inputs without a batch dimension, are not supported.")
    per_layer = 4 if has_biases else 2
    if len(params) != per_layer * num_layers * (1 + bidirectional):
        raise RefusedError("Projections of the state are not supported.")
    groups = [params[at : at + per_layer] for at in range(0, len(params), per_layer)]
    matrices = [matrix for group in groups for matrix in group[:2]]
    biases = [bias for group in groups for bias in group[2:]]
    if not has_biases:
        biases = [w.full((matrix.shape[0],), 0.0, matrix.dtype) for matrix in matrices]
    x = w.swap(input, 0, 1) if batch_first else input
    hidden = states[0].static(2)
    shape = (*x.shape[:2], hidden * (1 + bidirectional))
    nothing = w.full((0,), 0, "uint8")
    results = (Value(x.dtype, shape), Value(), Value(), Value())
    whole = w.emit_nested(
        "rnn", x, states, [*matrices, *biases], None, nothing, 0.0, bidirectional,
        x.static(2), hidden, num_layers, mode, 0, True, results=results,
    )  # fmt: skip
    outputs = w.item(whole, 0, results[0])
    listed = w.item(whole, 2, Value())
    last = [
        w.item(listed.ref, index, Value(state.dtype, state.shape))
        for index, state in enumerate(states)
    ]
    return (w.swap(outputs, 0, 1) if batch_first else outputs, *last)


def _sigmoid(w: Writer, x: Tensor) -> Tensor:
    return w.emit("sigmoid", x, dtype=x.dtype, shape=x.shape)


def _tanh(w: Writer, x: Tensor) -> Tensor:
    return w.emit("tanh", x, dtype=x.dtype, shape=x.shape)


def _projections(
    w: Writer, x: Tensor, hidden: Tensor, weights: tuple[Any, ...], number: int
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    w_ih, w_hh, b_ih, b_hh = weights
    size = hidden.static(-1)
    left, right = linear(w, x, w_ih, b_ih), linear(w, hidden, w_hh, b_hh)
    axis = left.ndim - 1
    return (split_into(w, left, [size] * number, axis), split_into(w, right, [size] * number, axis))


@rule("torch.gru_cell")
def gru_cell(
    w: Writer, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None,
    b_hh: Any = None,
) -> Tensor:  # fmt: skip
    left, right = _projections(w, input, hx, (w_ih, w_hh, b_ih, b_hh), 3)
    reset = _sigmoid(w, w.binary("add", left[0], right[0]))
    update = _sigmoid(w, w.binary("add", left[1], right[1]))
    new = _tanh(w, w.binary("add", left[2], w.binary("multiply", reset, right[2])))
    return w.binary("add", new, w.binary("multiply", update, arithmetic(w, "subtract", hx, new)))


@rule("torch.lstm_cell")
def lstm_cell(
    w: Writer, input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Any = None,
    b_hh: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    hidden, cell = hx
    left, right = _projections(w, input, hidden, (w_ih, w_hh, b_ih, b_hh), 4)
    input_gate, forget, new, output_gate = (
        w.binary("add", a, b) for a, b in zip(left, right, strict=True)
    )
    retained = w.binary("multiply", _sigmoid(w, forget), cell)
    added = w.binary("multiply", _sigmoid(w, input_gate), _tanh(w, new))
    cell = w.binary("add", retained, added)
    return w.binary("multiply", _sigmoid(w, output_gate), _tanh(w, cell)), cell
