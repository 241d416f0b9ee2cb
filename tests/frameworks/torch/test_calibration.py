"""Calibration: graphs that overflow or vanish on recorded statistics behave; others stay."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from graphnet_datasets import Sample, calibrate, make_inputs, materialize
from graphnet_datasets.errors import CalibrationError, MaterializeError, MemoryLimitError
from graphnet_datasets.frameworks.torch import stepping
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

LAYERS = 24
CHANNELS = 8


def build(inputs: list[Input], ops: list[Op]) -> Sample:
    last = Ref(len(inputs) + len(ops) - 1)
    return Sample("calibration/sample", "torch", "cv", tuple(inputs), tuple(ops), last)


def weight(shape: tuple[int, ...], *moments: float | None, role: str = "parameter") -> Input:
    return Input(role, Value("float32", shape), statistics=Statistics(*moments))  # type: ignore[arg-type]


def chain(op: str, kernel: Input, shape: tuple[int, ...]) -> Sample:
    """Return layers of one product each, and nothing that normalises."""
    inputs = [Input("input", Value("float32", shape)), *[kernel] * LAYERS]
    ops, last = [], 0
    for layer in range(LAYERS):
        ops.append(Op(op, (Ref(last), Ref(1 + layer))))
        last = len(inputs) + layer
    return build(inputs, ops)


def convolutions(variance: Statistics, mean: Statistics | None = None) -> Sample:
    """Return layers of a convolution, a batch norm and a rectifier."""
    running = Input("buffer", Value("float32", (CHANNELS,)))
    per_layer = [
        weight((CHANNELS, CHANNELS, 3, 3), 0.0, 0.5),
        dataclasses.replace(running, statistics=mean or Statistics(0.3, 0.4)),
        dataclasses.replace(running, statistics=variance),
        weight((CHANNELS,), 1.0, 0.3, 0.2, 2.0),
        weight((CHANNELS,), 0.0, 0.2),
    ]  # fmt: skip
    inputs = [Input("input", Value("float32", (2, CHANNELS, 12, 12))), *per_layer * LAYERS]
    ops, last = [], 0
    for layer in range(LAYERS):
        first = 1 + 5 * layer
        at = len(inputs) + 3 * layer
        ops += [
            Op("torch.conv2d", (Ref(last), Ref(first), None, (1, 1), (1, 1), (1, 1), 1)),
            Op("torch.nn.functional.batch_norm", (
                Ref(at), Ref(first + 1), Ref(first + 2), Ref(first + 3), Ref(first + 4),
                False, 0.1, 1e-5,
            )),
            Op("torch.nn.functional.relu", (Ref(at + 1),)),
        ]  # fmt: skip
        last = at + 2
    return build(inputs, ops)


def largest(sample: Sample, seed: int = 0) -> float:
    with torch.no_grad():
        output = materialize(sample)(**make_inputs(sample, seed, "fresh"))
    return float(output.abs().max())


HARD = {
    "variances near zero": convolutions(Statistics(0.02, 0.05, 0.0, 3.0)),
    "variances without a minimum": convolutions(Statistics(0.5, 0.6)),
    "means far away": convolutions(Statistics(1.0, 0.2, 0.1, 2.0), Statistics(40.0, 9.0)),
    "kernels too large": chain("torch.nn.functional.linear", weight((16, 16), 0.0, 9.0), (4, 16)),
    "kernels too small": chain("torch.nn.functional.linear", weight((16, 16), 0.0, 1e-3), (4, 16)),
    "kernels of zeros": chain("torch.nn.functional.linear", weight((16, 16), 0.0, 0.0), (4, 16)),
    "scales too large": chain("operator.mul", weight((16,), 7.0, 0.5), (4, 16)),
}


@pytest.mark.parametrize("name", HARD)
def test_no_draw_overflows_or_vanishes_once_calibrated(name: str) -> None:
    sample = HARD[name]
    before = largest(sample)
    assert not 1e-3 < before < 1e3, "the graph is hard as it was recorded"
    fitted = calibrate(sample)
    assert fitted.calibration == "calibrated"
    for seed in (0, 5, 6, 7):
        assert 1e-3 < largest(fitted, seed) < 1e3


def test_recorded_statistics_stay_beside_calibrated_ones() -> None:
    sample = HARD["kernels too large"]
    fitted = calibrate(sample)
    changed = [each for each in fitted.inputs if each.calibrated is not None]
    assert {each.origin for each in changed} == {"calibrated"}
    assert [each.statistics for each in fitted.inputs] == [
        each.statistics for each in sample.inputs
    ]
    assert Sample.from_row(fitted.to_row()) == fitted
    elements = make_inputs(fitted)["parameter_3"].numpy()
    wanted = fitted.inputs[4].calibrated
    assert wanted is not None
    assert elements.std() == pytest.approx(wanted.std, rel=0.1)


def test_a_graph_that_behaves_is_left_alone() -> None:
    sample = chain("torch.nn.functional.linear", weight((16, 16), 0.0, 0.25), (4, 16))
    fitted = calibrate(sample)
    assert fitted == dataclasses.replace(sample, calibration="unneeded")


@pytest.mark.parametrize("name", ["variances near zero", "kernels too small"])
def test_calibrating_again_finds_the_same(name: str) -> None:
    once = calibrate(HARD[name])
    assert calibrate(once) == once


def test_a_weight_that_was_used_before_is_not_scaled_afterwards() -> None:
    # A table of embeddings that is the head of the model as well: scaling it for the head would
    # change what the first operator has given.
    table = weight((50, 64), 0.0, 3.0)
    inputs = [Input("input", Value("int64", (2, 6))), table]
    ops = [
        Op("torch.nn.functional.embedding", (Ref(0), Ref(1))),
        Op("torch.nn.functional.linear", (Ref(2), Ref(1))),
    ]
    assert calibrate(build(inputs, ops)).inputs[1].calibrated is None


def test_a_kernel_that_is_moved_before_its_product_is_found() -> None:
    inputs = [Input("input", Value("float32", (4, 16))), weight((16, 16), 0.0, 50.0)]
    ops = [Op("torch.Tensor.t", (Ref(1),)), Op("torch.matmul", (Ref(0), Ref(2)))]
    fitted = calibrate(build(inputs, ops))
    assert fitted.inputs[1].calibrated is not None
    assert largest(fitted, 9) < 20


def test_a_gain_is_scaled_where_the_direction_is_normalised() -> None:
    # Weight normalisation: the product is proportional to the gain alone.
    inputs = [
        Input("input", Value("float32", (4, 16))),
        weight((8, 16), 0.0, 1.0),
        weight((8, 1), 70.0, 1.0, 60.0, 80.0),
    ]
    ops = [
        Op("torch._weight_norm", (Ref(1), Ref(2), 0)),
        Op("torch.nn.functional.linear", (Ref(0), Ref(3))),
    ]
    fitted = calibrate(build(inputs, ops))
    assert [each.calibrated is not None for each in fitted.inputs] == [False, False, True]
    assert largest(fitted, 4) < 20


@pytest.mark.parametrize("padding", [0, 1])
def test_outputs_that_biases_hold_up_depend_on_the_inputs_once_calibrated(padding: int) -> None:
    """Layers as `torch.nn.Conv2d` draws them, which pass a third of what the data decide."""
    bound = 1 / (3 * CHANNELS**0.5)
    layer = [
        weight((CHANNELS, CHANNELS, 3, 3), 0.0, bound / 3**0.5, -bound, bound),
        weight((CHANNELS,), 0.0, bound / 3**0.5, -bound, bound),
    ]
    data = Input("input", Value("float32", (1, CHANNELS, 64, 64)), statistics=Statistics(0.0, 1.0))
    inputs, ops, last = [data, *layer * LAYERS], [], 0
    for number in range(LAYERS):
        at, first = len(inputs) + 2 * number, 1 + 2 * number
        pads = (padding, padding)
        refs = Ref(last), Ref(first), Ref(first + 1)
        ops.append(Op("torch.conv2d", (*refs, (1, 1), pads, (1, 1), 1)))
        ops.append(Op("torch.nn.functional.relu", (Ref(at),)))
        last = at + 1
    sample = build(inputs, ops)
    fitted = calibrate(sample)

    def outputs(each: Sample, seed: int) -> torch.Tensor:
        module = materialize(each, weights="parameters")
        return module(**make_inputs(each, seed, weights="parameters")).detach()

    def share(each: Sample) -> float:
        one, two = outputs(each, 5), outputs(each, 6)
        return float((one - two).norm() / one.norm())

    assert share(sample) < 1e-5
    assert share(fitted) > 1e-3
    assert 1e-3 < outputs(fitted, 5).abs().max() < 1e3
    assert calibrate(fitted) == fitted


def test_a_graph_that_does_not_run_says_where() -> None:
    inputs = [Input("input", Value("float32", (4, 16))), weight((16, 3), 0.0, 1.0)]
    sample = build(inputs, [Op("torch.nn.functional.linear", (Ref(0), Ref(1)))])
    with pytest.raises((CalibrationError, RuntimeError), match="calibration/sample"):
        calibrate(sample)


def test_a_variance_without_a_minimum_is_drawn_positive() -> None:
    sample = convolutions(Statistics(0.5, 0.6))
    drawn = np.concatenate([make_inputs(sample, seed)["buffer_1"].numpy() for seed in range(100)])
    assert drawn.min() > 0
    assert drawn.mean() == pytest.approx(0.5, rel=0.15)


@st.composite
def networks(draw: st.DrawFn) -> Sample:
    """Return layers of products, norms and activations, with statistics of any size."""
    inputs = [Input("input", Value("float32", (4, CHANNELS)), statistics=Statistics(0.0, 1.0))]
    layers: list[tuple[str, list[int]]] = []

    def add(*moments: float | None, shape: tuple[int, ...] = (CHANNELS,)) -> int:
        inputs.append(weight(shape, *moments))
        return len(inputs) - 1

    for _ in range(draw(st.integers(2, 12))):
        kind = draw(st.sampled_from(("linear", "batch_norm", "tanh", "relu", "scale")))
        size = 10.0 ** draw(st.floats(-5, 5))
        if kind == "linear":
            layers.append((kind, [add(0.0, size, shape=(CHANNELS, CHANNELS))]))
        elif kind == "scale":
            layers.append((kind, [add(size, size / 10)]))
        elif kind == "batch_norm":
            share = draw(st.floats(0.01, 3))
            layers.append((kind, [add(size, size), add(size, share * size, 0.0)]))
        else:
            layers.append((kind, []))
    targets = {
        "linear": "torch.nn.functional.linear", "scale": "operator.mul", "tanh": "torch.tanh",
        "relu": "torch.nn.functional.relu", "batch_norm": "torch.nn.functional.batch_norm",
    }  # fmt: skip
    ops, last = [], 0
    for kind, held in layers:
        rest = (None, None, False, 0.1, 1e-5) if kind == "batch_norm" else ()
        ops.append(Op(targets[kind], (Ref(last), *map(Ref, held), *rest)))
        last = len(inputs) + len(ops) - 1
    return build(inputs, ops)


@settings(max_examples=25, deadline=None)
@given(networks())
def test_any_network_stays_in_range_on_draws_that_calibration_has_not_seen(sample: Sample) -> None:
    fitted = calibrate(sample)
    for seed in (0, 21, 22):
        assert largest(fitted, seed) < 1e4, "and so neither NaN nor infinite"
    kept = [dataclasses.replace(each, calibrated=None) for each in fitted.inputs]
    assert kept == list(sample.inputs), "what was recorded stays"
    assert calibrate(fitted) == fitted, "and again finds the same"
    assert Sample.from_row(fitted.to_row()) == fitted


class _Products(TorchFunctionMode):
    """Keeps the dtypes that a product is called with, and that of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[torch.dtype, torch.dtype]] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.nn.functional.linear:
            self.seen.add((args[0].dtype, result.dtype))
        return result


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_in_float16_are_computed_in_float32_and_rounded(dtype: str) -> None:
    given = torch.float32 if dtype == "float16" else torch.bfloat16
    value = Value(dtype, (16, 16))
    inputs = [Input("input", value), Input("parameter", value, statistics=Statistics(0.0, 1e-3))]
    sample = build(inputs, [
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.nn.functional.linear", (Ref(2), Ref(1))),
        Op("torch.nn.functional.relu", (Ref(3),)),
    ])  # fmt: skip
    with _Products() as products:
        fitted = calibrate(sample)
    assert products.seen == {(given, given)}
    module = materialize(fitted)
    assert module(**make_inputs(fitted)).dtype == getattr(torch, dtype)


def test_operands_of_two_dtypes_are_refused_by_calibration_as_by_a_run() -> None:
    inputs = [Input("input", Value("float16", (4, 4))), weight((4, 4), 0.0, 1.0)]
    sample = build(inputs, [Op("torch.nn.functional.linear", (Ref(0), Ref(1)))])
    with pytest.raises(CalibrationError, match="dtype"):
        calibrate(sample)


def test_invalid_devices_are_refused() -> None:
    with pytest.raises(MaterializeError, match="`device='warp'` is not a device of torch: "):
        calibrate(HARD["kernels too small"], device="warp")
    with pytest.raises(CalibrationError, match="cannot be calibrated on 'cuda:99': "):
        calibrate(HARD["kernels too small"], device="cuda:99")


@pytest.mark.gpu
@pytest.mark.parametrize("name", HARD)
def test_calibration_on_a_gpu_agrees_with_the_cpu(name: str) -> None:
    on_cpu, on_gpu = calibrate(HARD[name]), calibrate(HARD[name], device="cuda")
    assert on_gpu.calibration == on_cpu.calibration
    for one, two in zip(on_cpu.inputs, on_gpu.inputs, strict=True):
        assert (one.calibrated is None) == (two.calibrated is None)
        if one.calibrated is not None and two.calibrated is not None:
            found = dataclasses.astuple(one.calibrated), dataclasses.astuple(two.calibrated)
            for expected, got in zip(*found, strict=True):
                assert got == expected or got == pytest.approx(expected, rel=0.02, abs=1e-3)


def test_a_full_device_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    full = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore text.")

    def exhausted(*_: Any, **__: Any) -> None:
        raise full

    with monkeypatch.context() as patch:
        patch.setattr(stepping, "make_input", exhausted)
        with pytest.raises(MemoryLimitError, match=r"^Making `input_0` .* runs out of"):
            calibrate(HARD["kernels too small"])
    monkeypatch.setattr(torch.fx.Interpreter, "run_node", exhausted)
    with pytest.raises(MemoryLimitError, match=r"2\.00 GiB\. Run fewer samples at a time"):
        calibrate(HARD["kernels too small"])


@pytest.mark.gpu
def test_a_gpu_without_free_memory_is_reported() -> None:
    large = weight((2**10, 2**20), 0.0, 1.0)
    sample = build([weight((4, 2**10), 0.0, 1.0, role="input"), large],
                   [Op("torch.matmul", (Ref(0), Ref(1)))])  # fmt: skip
    with pytest.raises(MemoryLimitError, match=r"takes 4\.295 GB while it is generated"):
        calibrate(sample, device="cuda", memory_limit_bytes=2**30)
