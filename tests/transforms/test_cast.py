"""Graphs in other floating-point formats, and under autocast."""

from __future__ import annotations

import dataclasses
import re
import struct
from typing import Any

import numpy as np
import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.errors import SampleError, TransformError
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Named, Ref
from graphnet_datasets.transforms import autocast, cast
from tests.embedded import samples
from tests.transforms.test_cut import small_graphs

X = Input("input", Value("float32", (4, 6)))
WEIGHT = Input("parameter", Value("float32", (6, 6)), statistics=Statistics(0.0, 0.4))
INDICES = Input("input", Value("int64", (4,)), statistics=Statistics(1.0, 1.0, 0.0, 3.0))


def graph(*ops: Op, inputs: tuple[Input, ...] = (X,), outputs: Any = None) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs)


def run(sample: Sample) -> tuple[torch.Tensor, ...]:
    return materialize(sample)(**make_inputs(sample))


def same_draws(sample: Sample) -> Sample:
    """Return it under the name of the original, by which inputs are drawn."""
    return dataclasses.replace(sample, id="test/whole")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_floats_change_and_integers_do_not(dtype: str) -> None:
    whole = graph(
        Op("torch.matmul", (Ref(0), Ref(1))),
        Op("torch.index_select", (Ref(3), 0, Ref(2))),
        Op("torch.Tensor.argmax", (Ref(4), 1)),
        inputs=(X, WEIGHT, INDICES),
        outputs=(Ref(4), Ref(5)),
    )
    result = cast(whole, dtype)
    assert [each.value.dtype for each in result.inputs] == [dtype, dtype, "int64"]
    values, places = run(result)
    assert (str(values.dtype), places.dtype) == (f"torch.{dtype}", torch.int64)
    assert result.provenance.parent_id == "test/whole"


def test_the_result_is_near_the_original() -> None:
    whole = graph(Op("torch.matmul", (Ref(0), Ref(1))), inputs=(X, WEIGHT))
    (expected,) = run(whole)
    (double,) = run(same_draws(cast(whole, "float64")))
    assert torch.allclose(double.float(), expected, rtol=1e-5, atol=1e-6)
    (short,) = run(same_draws(cast(whole, "bfloat16")))
    assert torch.allclose(short.float(), expected, rtol=0.1, atol=0.1)


def test_dtype_arguments_are_cast_too() -> None:
    whole = graph(
        Op("torch.Tensor.float", (Ref(0),)),
        Op("torch.Tensor.to", (Ref(1), Named("dtype", "float32"))),
        Op("torch.nn.functional.softmax", (Ref(2), 1), (("dtype", Named("dtype", "float32")),)),
        Op("torch.ones", (6,)),
        Op("torch.arange", (6,)),
        Op("torch.add", (Ref(3), Ref(4))),
        Op("torch.add", (Ref(6), Ref(5))),
    )
    result = cast(whole, "bfloat16")
    assert result.ops[0].target == "torch.Tensor.bfloat16"
    assert result.ops[1].args[1] == Named("dtype", "bfloat16")
    assert result.ops[2].kwargs == (("dtype", Named("dtype", "bfloat16")),)
    assert result.ops[3].kwargs == (("dtype", Named("dtype", "bfloat16")),)  # torch's default
    assert result.ops[4].kwargs == ()  # makes integers
    assert run(result)[0].dtype == torch.bfloat16


def test_a_format_that_is_left_to_torch_is_named() -> None:
    whole = graph(Op("torch.zeros", (4,), (("dtype", None), ("requires_grad", False))))
    (op,) = cast(whole, "bfloat16").ops
    assert op.kwargs == (("requires_grad", False), ("dtype", Named("dtype", "bfloat16")))


def test_literals_fit_the_format() -> None:
    lowest = float(np.finfo(np.float32).min)
    whole = graph(
        Op("torch.add", (Ref(0), lowest)), Op("torch.add", (Ref(0), 1e-12)),
        Op("torch.add", (Ref(0), -float("inf"))), Op("torch.add", (Ref(0), 0.0)),
        outputs=(Ref(1), Ref(2), Ref(3), Ref(4)),
    )  # fmt: skip
    numbers = [op.args[1] for op in cast(whole, "float16").ops]
    assert numbers == [-65504.0, 2.0**-14, -float("inf"), 0.0]
    assert [op.args[1] for op in cast(whole, "float64").ops] == [op.args[1] for op in whole.ops]


def test_stored_elements_and_bounds_are_converted() -> None:
    mask = np.array([0.0, -3.4e38, -np.inf, 1.5], "<f4")
    stored = Input("constant", Value("float32", (4,)), data=mask.tobytes())
    bounded = Input("input", Value("float32", (4,)), statistics=Statistics(0, 1, -1e38, 1e38))
    whole = graph(Op("torch.maximum", (Ref(0), Ref(1))), inputs=(stored, bounded))
    half = cast(whole, "float16", check=False)
    elements = np.frombuffer(half.inputs[0].data or b"", "<f2")
    assert elements.tolist() == [0.0, -65504.0, -np.inf, 1.5]
    assert half.inputs[1].statistics == Statistics(0, 1, -65504.0, 65504.0)
    brain = cast(whole, "bfloat16", check=False)
    bits = struct.unpack("<4H", brain.inputs[0].data or b"")
    assert (bits[0], bits[2], bits[3]) == (0, 0xFF80, 0x3FC0)
    assert make_inputs(brain)["constant_0"].dtype == torch.bfloat16
    again = cast(brain, "float32", check=False)
    assert np.frombuffer(again.inputs[0].data or b"", "<f4")[[0, 2, 3]].tolist() == [
        0,
        -np.inf,
        1.5,
    ]


def test_statistics_and_weights_of_batch_norms_stay_wide() -> None:
    image = Input("input", Value("float32", (2, 3, 4, 4)))
    channel = Input("buffer", Value("float32", (3,)), statistics=Statistics(1.0, 0.1, 0.5, 2.0))
    norm = Op("torch.nn.functional.batch_norm", tuple(map(Ref, range(5))))
    result = cast(graph(norm, inputs=(image, *4 * (channel,))), "bfloat16")
    assert [each.value.dtype for each in result.inputs] == ["bfloat16", *4 * ["float32"]]
    assert run(result)[0].dtype == torch.bfloat16
    assert cast(graph(norm, inputs=(image, *4 * (channel,))), "float64").inputs[1].value.dtype == (
        "float64"
    )


def test_overflows_and_failures_are_refused_with_the_operator() -> None:
    large = Input("input", Value("float32", (4,)), statistics=Statistics(6e4, 1.0, 5e4, 6.5e4))
    with pytest.raises(SampleError, match=r"overflows: operator 0 \(`torch.add`\)"):
        cast(graph(Op("torch.add", (Ref(0), Ref(0))), inputs=(large,)), "float16")
    with pytest.raises(SampleError, match=r"does not run: Op 0 \(`torch.fft.fft`\)"):
        cast(graph(Op("torch.fft.fft", (Ref(0),))), "bfloat16")


def test_infinities_of_the_original_are_no_overflow() -> None:
    whole = graph(Op("torch.mul", (Ref(0), 0)), Op("torch.reciprocal", (Ref(1),)))
    assert cast(whole, "float16").num_ops == 2


def test_autocast_computes_products_in_the_short_format() -> None:
    whole = graph(
        Op("torch.matmul", (Ref(0), Ref(1))), Op("torch.add", (Ref(2), Ref(0))),
        inputs=(X, WEIGHT), outputs=(Ref(2), Ref(3)),
    )  # fmt: skip
    result = autocast(whole)
    assert [each.value.dtype for each in result.inputs] == ["float32", "float32"]
    product, total = run(result)
    assert (product.dtype, total.dtype) == (torch.bfloat16, torch.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cast(graph(Op("torch.relu", (Ref(0),))), "int8"),
         "Graphs cannot be cast to 'int8'. Choose one of bfloat16, float16, float32, float64."),
        (lambda: autocast(graph(Op("torch.relu", (Ref(0),))), "float64"),
         "Autocast computes in bfloat16 or float16, not in 'float64'. Choose one of these."),
    ],
)  # fmt: skip
def test_impossible_casts_are_refused(call: Any, message: str) -> None:
    with pytest.raises(SampleError, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_embedded_graphs_run_in_other_formats(dtype: str) -> None:
    samples = [
        each for each in small_graphs("torch", 25) if each.input_bytes < 1e7 and not each.symbols
    ]
    chosen = [each for each in samples if not any("fft" in op.target for op in each.ops)][::12]
    assert chosen
    refused = []
    for sample in chosen:
        try:
            cast(sample, dtype)
        except SampleError as error:
            refused.append(str(error))
    assert len(refused) <= len(chosen) // 5, refused


@pytest.mark.paddle
def test_a_graph_of_paddle_in_double_precision() -> None:
    (sample,) = samples(("paddle/resnet18-64",)).values()
    result = cast(sample, "float64")
    floats = [value.value.dtype for value in result.inputs if "float" in str(value.value.dtype)]
    assert set(floats) == {"float64"}
    materialize(result)(*make_inputs(result).values())


def test_operators_without_a_cpu_kernel_are_emulated_in_float32() -> None:
    whole = graph(Op("torch.fft.fft", (Ref(0),)), Op("torch.abs", (Ref(1),)))
    with pytest.raises(TransformError, match=r"does not run: Op 0 \(`torch.fft.fft`\)") as caught:
        cast(whole, "bfloat16")
    assert (caught.value.operator, caught.value.reason) == ("torch.fft.fft", "it does not run")
    result = cast(whole, "bfloat16", emulate=True)
    assert result.provenance.tags == ("emulated",)
    assert cast(whole, "float64", emulate=True).provenance.tags == (), "it runs as it is"
    large = Input("input", Value("float32", (4,)), statistics=Statistics(6e4, 1.0, 5e4, 6.5e4))
    with pytest.raises(TransformError, match="overflows: operator 1") as caught:
        twice = (Op("torch.fft.fft", (Ref(0),)), Op("torch.add", (Ref(0), Ref(0))))
        cast(graph(*twice, inputs=(large,)), "float16", emulate=True)
    assert caught.value.operator == "torch.add"


def test_a_graph_that_runs_in_no_format_is_distinguished() -> None:
    broken = graph(Op("torch.linalg.cholesky", (Ref(0),)), inputs=(X,))
    with pytest.raises(TransformError, match="`test/whole` itself does not run") as caught:
        cast(broken, "bfloat16")
    assert caught.value.reason == "the graph itself does not run on a CPU"


@pytest.mark.paddle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_paddle_has_no_short_kernels_on_a_cpu_and_they_can_be_emulated(dtype: str) -> None:
    pytest.importorskip("paddle", reason="paddle is not installed")
    square = Input("input", Value("float32", (4, 4)), statistics=Statistics(0.0, 1.0))
    ops = (
        Op("paddle._C_ops.matmul", (Ref(0), Ref(0), False, False)),
        Op("paddle._C_ops.relu", (Ref(1),)),
    )
    whole = Sample("test/whole", "paddle", "other", (square,), ops, Ref(2))
    with pytest.raises(TransformError, match="does not run: Op 0"):
        cast(whole, dtype)
    assert cast(whole, dtype, emulate=True).provenance.tags == ("emulated",)
