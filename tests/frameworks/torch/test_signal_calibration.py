"""Calibration for signal: attention that selects, and outputs that depend on the data."""

from __future__ import annotations

import dataclasses
import math

import pytest

from graphnet_datasets import Sample, calibrate, make_inputs
from graphnet_datasets.frameworks import measure_signal
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

TOKENS, WIDTH, HEADS = 32, 32, 4


def weight(shape: tuple[int, ...], mean: float, std: float, name: str = "") -> Input:
    statistics = Statistics(mean, std, mean - 5 * std, mean + 5 * std)
    return Input("parameter", Value("float32", shape), name, statistics=statistics)


def attention(std: float, *, is_fused: bool, is_packed: bool = False) -> Sample:
    """Return attention whose projections have the standard deviation `std`.

    With `is_packed`, queries, keys and values have one weight.
    """
    data = Input("input", Value("float32", (2, TOKENS, WIDTH)), statistics=Statistics(0.0, 1.0))
    inputs, ops = [data], []
    if is_packed:
        inputs.append(weight((3 * WIDTH, WIDTH), 0.0, std))
        ops.append(Op("torch.nn.functional.linear", (Ref(0), Ref(1))))
        ops.append(Op("torch.Tensor.chunk", (Ref(2), 3), (("dim", -1),)))
        ops += [Op("operator.getitem", (Ref(3), number)) for number in range(3)]
    else:
        inputs += [weight((WIDTH, WIDTH), 0.0, std)] * 2 + [weight((WIDTH, WIDTH), 0.0, 0.2)]
        ops += [Op("torch.nn.functional.linear", (Ref(0), Ref(number))) for number in (1, 2, 3)]
    parts = [len(inputs) + len(ops) - 3 + number for number in range(3)]
    heads = []
    for part in parts:
        shape = (2, TOKENS, HEADS, WIDTH // HEADS)
        ops.append(Op("torch.Tensor.view", (Ref(part), *shape)))
        ops.append(Op("torch.Tensor.transpose", (Ref(len(inputs) + len(ops) - 1), 1, 2)))
        heads.append(Ref(len(inputs) + len(ops) - 1))
    if is_fused:
        ops.append(Op("torch.nn.functional.scaled_dot_product_attention", tuple(heads)))
    else:
        last = len(inputs) + len(ops)
        scale = 1 / math.sqrt(WIDTH // HEADS)
        ops += [
            Op("torch.Tensor.transpose", (heads[1], -1, -2)),
            Op("torch.matmul", (heads[0], Ref(last))),
            Op("operator.mul", (Ref(last + 1), scale)),
            Op("torch.nn.functional.softmax", (Ref(last + 2),), (("dim", -1),)),
            Op("torch.matmul", (Ref(last + 3), heads[2])),
        ]
    outputs = Ref(len(inputs) + len(ops) - 1)
    return Sample("signal/attention", "torch", "nlp", tuple(inputs), tuple(ops), outputs)


@pytest.mark.parametrize("is_fused", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("std", [0.01, 3.0])
def test_uniform_and_one_hot_attention_is_moved_into_the_interval(
    std: float, is_packed: bool, is_fused: bool
) -> None:
    sample = attention(std, is_fused=is_fused, is_packed=is_packed)
    before = measure_signal(sample).attention_entropy
    assert before is not None
    assert before > 0.99 if std < 1 else before < 0.2
    fitted = calibrate(sample)
    figures = measure_signal(fitted)
    assert figures.attention_entropy is not None
    assert 0.25 < figures.attention_entropy < 0.75
    assert figures.outcome == "reached"
    assert calibrate(fitted) == fitted
    assert Sample.from_row(fitted.to_row()) == fitted


def test_attention_in_the_interval_stays_as_it_is() -> None:
    fitted = calibrate(attention(0.3, is_fused=True))
    assert fitted.calibration == "unneeded"
    assert fitted.inputs[0].signal == "features"


def network(*, bias: float, norm_shift: float) -> Sample:
    """Return four convolutions with batch norms and rectifiers, pooling and a classifier."""
    channels = 16
    data = Input("input", Value("float32", (1, 3, 32, 32)), statistics=Statistics(0.0, 1.0))
    inputs, ops, last = [data], [], 0
    layers = 4
    for layer in range(layers):
        width = 3 if layer == 0 else channels
        bound = 1 / math.sqrt(9 * width)
        inputs += [
            weight((channels, width, 3, 3), 0.0, bound),
            weight((channels,), bias, 0.1, "conv.bias"),
            weight((channels,), 0.0, 0.1, "running_mean"),
            weight((channels,), 1.0, 0.05, "running_var"),
            weight((channels,), 1.0, 0.05, "weight"),
            weight((channels,), norm_shift, 0.1, "bias"),
        ]
    inputs += [weight((10, channels), 0.0, 0.25), weight((10,), bias, 0.1, "head.bias")]
    for layer in range(layers):
        first, at = 1 + 6 * layer, len(inputs) + len(ops)
        refs = Ref(last), Ref(first), Ref(first + 1)
        ops += [
            Op("torch.conv2d", (*refs, (1, 1), (1, 1), (1, 1), 1)),
            Op("torch.nn.functional.batch_norm",
               (Ref(at), *(Ref(first + place) for place in (2, 3, 4, 5)), False, 0.1, 1e-5)),
            Op("torch.nn.functional.relu", (Ref(at + 1),)),
        ]  # fmt: skip
        last = at + 2
    ops += [
        Op("torch.nn.functional.adaptive_avg_pool2d", (Ref(last), (1, 1))),
        Op("torch.flatten", (Ref(last + 1), 1)),
        Op("torch.nn.functional.linear",
           (Ref(last + 2), Ref(len(inputs) - 2), Ref(len(inputs) - 1))),
    ]  # fmt: skip
    return Sample("signal/network", "torch", "cv", tuple(inputs), tuple(ops), Ref(last + 3))


@pytest.mark.parametrize(("bias", "norm_shift"), [(5.0, 0.0), (4.0, 4.0)])
def test_a_network_that_shifts_hold_up_becomes_sensitive(bias: float, norm_shift: float) -> None:
    sample = network(bias=bias, norm_shift=norm_shift)
    before = measure_signal(sample)
    assert before.input_sensitivity is not None
    assert before.input_sensitivity < 0.1
    assert before.outcome == "insensitive outputs"
    fitted = calibrate(sample)
    assert fitted.inputs[0].signal == "image"
    after = measure_signal(fitted)
    assert after.outcome == "reached"
    assert [value.statistics for value in fitted.inputs] == [
        value.statistics for value in sample.inputs
    ], "recorded statistics stay"


def test_graphs_that_cannot_reach_the_targets_say_so() -> None:
    data = Input("input", Value("float32", (4, 16)))

    def outcome(*ops: Op, inputs: tuple[Input, ...] = (data,)) -> str:
        last = Ref(len(inputs) + len(ops) - 1)
        sample = Sample("signal/limit", "torch", "other", inputs, ops, last)
        return measure_signal(calibrate(sample)).outcome

    assert outcome(Op("torch.argmax", (Ref(0),))) == "integer outputs"
    assert outcome(Op("torch.zeros_like", (Ref(0),))) == "insensitive outputs"
    closed = (weight((4, 16), 0.0, 1.0),)
    assert outcome(Op("torch.tanh", (Ref(0),)), inputs=closed) == "no data inputs"


def test_random_operators_draw_the_same_numbers_in_both_runs() -> None:
    data = Input("input", Value("float32", (64, 64)), statistics=Statistics(0.0, 1.0))
    ops = (
        Op("torch.rand_like", (Ref(0),)),
        Op("operator.mul", (Ref(0), 0.0)),
        Op("operator.add", (Ref(1), Ref(2))),
    )
    sample = Sample("signal/random", "torch", "other", (data,), ops, Ref(3))
    assert measure_signal(sample).input_sensitivity == 0


def test_rows_of_older_calibrations_draw_the_same_elements() -> None:
    sample = network(bias=0.0, norm_shift=0.0)
    inputs = list(sample.inputs)
    inputs[1] = dataclasses.replace(inputs[1], calibrated=Statistics(0.0, 0.2))
    stored = dataclasses.replace(sample, inputs=tuple(inputs), calibration="calibrated")
    row = stored.to_row()
    columns = ("signals", "input_sensitivity", "attention_entropy", "signal_outcome")
    assert all(row[name] is None for name in columns)
    older = Sample.from_row({name: row[name] for name in row if name not in columns})
    assert older == stored
    drawn, expected = make_inputs(older, 3, "fresh"), make_inputs(stored, 3, "fresh")
    assert all(bool((drawn[name] == expected[name]).all()) for name in drawn)  # pyright: ignore[reportAttributeAccessIssue]
