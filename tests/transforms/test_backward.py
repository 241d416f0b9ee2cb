"""Graphs of gradients: what they compute, what goes into them, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.errors import GradientError, SampleError, UncheckedOperatorError
from graphnet_datasets.frameworks.gradients import EXPONENTS
from graphnet_datasets.frameworks.torch.differentiating.trial import t_of
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from graphnet_datasets.scores.tolerance import ATOL_RTOL_EXPONENTS, min_t
from graphnet_datasets.transforms import backward, cut, differentiate

X = Input("input", Value("float32", (4, 6)))
WEIGHT = Input("parameter", Value("float32", (6, 6)), statistics=Statistics(0.0, 0.4))
IMAGES = Input("input", Value("float32", (2, 4, 8, 8)))
KERNEL = Input("parameter", Value("float32", (4, 4, 3, 3)), statistics=Statistics(0.0, 0.2))
SCALE = Input("parameter", Value("float32", (4,)), statistics=Statistics(1.0, 0.1))
VARIANCE = Input("buffer", Value("float32", (4,)), statistics=Statistics(1.0, 0.1, 0.5, 1.5))
INDICES = Input("input", Value("int64", (5,)), statistics=Statistics(1.0, 1.0, 0.0, 5.0))
BAGS = Input("input", Value("int64", (3, 4)), statistics=Statistics(2.0, 1.0, 0.0, 5.0))
GRU = (False, 1, 0.0, False, False, False)
KINDS = ("joint", "forward", "backward")


def graph(*ops: Op, inputs: tuple[Input, ...] = (X,), outputs: Any = None) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs)


def call(name: str, *args: Any, **kwargs: Any) -> Op:
    return Op(f"torch.nn.functional.{name}", args, tuple(kwargs.items()))


LAYER = graph(Op("torch.matmul", (Ref(0), Ref(1))), Op("torch.tanh", (Ref(2),)), inputs=(X, WEIGHT))
MASK = Input("input", Value("bool", (4,)), data=bytes([1, 0, 1, 1]))
VECTOR = Input("input", Value("float32", (4,)))
CASES = {
    "a column of masked rows": graph(
        Op("torch.Tensor.clone", (Ref(0),)),
        Op("operator.getitem", (Ref(1), Ref(2)), results=(Value("float32", None),)),
        Op("operator.setitem", (Ref(3), (Ref(2), 0), Ref(4)), results=()),
        Op("operator.mul", (Ref(3), 2)),
        inputs=(X, VECTOR, MASK),
    ),
    "convolution": graph(
        Op("torch.conv2d", (Ref(0), Ref(1))), call("gelu", Ref(2)), inputs=(IMAGES, KERNEL)
    ),
    "batch norm in training": graph(
        call("batch_norm", Ref(0), Ref(2), Ref(3), Ref(1), None, True),
        inputs=(IMAGES, SCALE, VARIANCE, VARIANCE),
    ),
    "batch norm": graph(
        call("batch_norm", Ref(0), Ref(2), Ref(3), Ref(1), None, False),
        inputs=(IMAGES, SCALE, VARIANCE, VARIANCE),
    ),
    "group norm": graph(call("group_norm", Ref(0), 2, Ref(1)), inputs=(IMAGES, SCALE)),
    "layer norm": graph(
        call("layer_norm", Ref(0), (6,)), call("silu", Ref(1)), Op("torch.softmax", (Ref(2), -1))
    ),
    "attention": graph(
        call("scaled_dot_product_attention", Ref(0), Ref(0), Ref(0)), inputs=(IMAGES,)
    ),
    "embedding": graph(call("embedding", Ref(0), Ref(1), 2), inputs=(INDICES, WEIGHT)),
    "bags of embeddings": graph(
        call("embedding_bag", Ref(0), Ref(1), mode="mean", padding_idx=2), inputs=(BAGS, WEIGHT)
    ),
    "indexing": graph(Op("operator.getitem", (Ref(0), (Ref(1),))), inputs=(WEIGHT, INDICES)),
    "max pooling": graph(call("max_pool2d", Ref(0), 3, 2, 1), inputs=(IMAGES,)),
    "average pooling": graph(
        call("avg_pool2d", Ref(0), 2), call("adaptive_avg_pool2d", Ref(1), 2), inputs=(IMAGES,)
    ),
    "views": graph(
        Op("torch.chunk", (Ref(0), 2, 1)),
        Op("operator.getitem", (Ref(1), 0)),
        Op("torch.Tensor.unfold", (Ref(2), 1, 2, 1)),
        Op("torch.cat", (ListArg((Ref(3), Ref(3))), 0)),
    ),
    "writing in place": graph(
        Op("torch.Tensor.add_", (Ref(0), 1)),
        call("relu", Ref(1), inplace=True),
        Op("torch.Tensor.mul", (Ref(2), Ref(2))),
    ),
    "no gradient inside": graph(
        Op("torch._C._set_grad_enabled", (False,)),
        Op("torch.exp", (Ref(0),)),
        Op("torch._C._set_grad_enabled", (True,)),
        Op("torch.mul", (Ref(0), Ref(2))),
    ),
    "two outputs of one memory": graph(
        Op("torch.exp", (Ref(0),)), Op("torch.Tensor.t", (Ref(1),)), outputs=(Ref(1), Ref(2))
    ),
    "resampling": graph(
        call("interpolate", Ref(0), (5, 7), None, "bilinear"),
        call("interpolate", Ref(1), None, 2.0, "nearest"),
        inputs=(IMAGES,),
    ),
    "weight norm": graph(
        Op("torch._weight_norm", (Ref(1), Ref(2), 0)),
        Op("torch.matmul", (Ref(0), Ref(3))),
        inputs=(X, WEIGHT, Input("parameter", Value("float32", (6, 1)))),
    ),
    "a Fourier transform": graph(
        Op("torch.fft.rfft2", (Ref(0),)),
        Op("torch.Tensor.mul", (Ref(1), Ref(1))),
        Op("torch.fft.irfft", (Ref(2), 6, -1, "ortho")),
    ),
    "a recurrent layer": graph(
        Op("torch.gru", (Ref(0), Ref(1), ListArg((Ref(2), Ref(3))), *GRU)),
        Op("operator.getitem", (Ref(4), 0)),
        inputs=(
            Input("input", Value("float32", (3, 2, 6))),
            Input("input", Value("float32", (1, 2, 4))),
            Input("parameter", Value("float32", (12, 6))),
            Input("parameter", Value("float32", (12, 4))),
        ),
    ),
    "sizes that elements decide": graph(
        Op("torch.Tensor.gt", (Ref(0), 0.5)),
        Op("operator.getitem", (Ref(0), Ref(1))),
        Op("torch.Tensor.mul", (Ref(2), Ref(2))),
    ),
    "a softmax of sizes that elements decide": graph(
        Op("torch.Tensor.gt", (Ref(0), 0.5)),
        Op("operator.getitem", (Ref(0), Ref(1))),
        Op("torch.softmax", (Ref(2), 0)),
    ),
    "a slice of a layout of its own": graph(
        Op("torch.Tensor.permute", (Ref(0), 0, 2, 3, 1)),
        Op("torch.as_strided", (Ref(1), (2, 3), (4, 1), 1)),
        inputs=(IMAGES,),
    ),
    "a loss": graph(
        Op("torch.nn.functional.cross_entropy", (Ref(0), Ref(1))),
        inputs=(Input("input", Value("float32", (5, 6))), INDICES),
    ),
}


ROUNDED = ("a softmax of sizes that elements decide",)
"""What is written out where torch's own kernel would trust sizes, and rounds in other places."""


@pytest.mark.parametrize("case", CASES)
def test_every_graph_gives_the_gradients_of_eager_autograd(case: str) -> None:
    """`differentiate` compares them itself; -inf says that all bits are the same."""
    made = differentiate(CASES[case])
    assert made.largest_t == -math.inf or (case in ROUNDED and made.largest_t < -7)
    assert (made.joint.kind, made.forward.kind, made.backward.kind) == KINDS
    for each in (made.joint, made.forward, made.backward):
        assert each.provenance.parent_id == "test/whole" and each.id == f"test/whole/{each.kind}"
        assert Sample.from_row(each.to_row()) == each


def test_weighted_bags_of_embeddings_are_summed_by_operators_that_compare_indices() -> None:
    """Eager rounds once where a product is added to a sum; what is written out rounds twice."""
    weights = Input("input", Value("float32", (3, 4)))
    bags = call("embedding_bag", Ref(0), Ref(1), mode="sum", per_sample_weights=Ref(2))
    made = differentiate(graph(bags, inputs=(BAGS, WEIGHT, weights)), of="all")
    assert made.largest_t < -6.5 and len(made.joint.outputs) == 3
    assert not any("embedding_bag" in op.target for op in made.joint.ops)


def test_gradients_are_found_where_the_caller_wants_none() -> None:
    with torch.no_grad():
        assert differentiate(LAYER).largest_t == -math.inf
        assert not torch.is_grad_enabled()


def test_a_joint_graph_agrees_with_autograd() -> None:
    """Compared here once more, without the library's own comparison."""
    joint = backward(LAYER)
    inputs = make_inputs(joint)
    output, gradient = materialize(joint)(**inputs)
    x, tangent = inputs["input_0"], inputs["input_1"]
    weight = inputs["parameter_0"].clone().requires_grad_()
    expected = torch.tanh(x @ weight)
    (expected_gradient,) = torch.autograd.grad(expected, weight, tangent)
    assert torch.equal(output, expected) and torch.equal(gradient, expected_gradient)
    assert json.loads(joint.provenance.metadata)["outputs"] == [
        "output 0",
        "gradient of `parameter_0`",
    ]


@pytest.mark.parametrize("partition", ["default", "min_cut"])
def test_both_halves_reproduce_the_whole(partition: Any) -> None:
    made = differentiate(CASES["convolution"], partition=partition, of="all")
    names = [each.source_name for each in made.backward.inputs]
    assert names[-1] == "tangent_0" and made.largest_t == -math.inf
    assert any(name.startswith("saved_") for name in names)


def test_saved_tensors_have_the_statistics_of_a_run() -> None:
    made = backward(LAYER, "backward")
    saved = next(each for each in made.inputs if each.source_name == "saved_tanh")
    assert saved.statistics is not None and saved.statistics.is_measured
    assert saved.statistics.max is not None and saved.statistics.max <= 1
    tangent = next(each for each in made.inputs if each.source_name == "tangent_0")
    assert tangent.statistics == Statistics(0.0, 1.0, is_measured=False)


def test_gradients_of_a_whole_graph_are_those_of_its_parameters() -> None:
    names = {of: _gradients(backward(LAYER, of=of)) for of in ("auto", "parameters", "all")}  # type: ignore[arg-type]
    assert names == {"auto": 1, "parameters": 1, "all": 2}
    part = cut(LAYER, [0]).sample
    assert _gradients(backward(part)) == 2


def _gradients(sample: Sample) -> int:
    outputs = json.loads(sample.provenance.metadata)["outputs"]
    return sum(each.startswith("gradient") for each in outputs)


def test_masks_of_dropout_are_inputs() -> None:
    made = differentiate(graph(call("dropout", Ref(0), 0.5), Op("torch.exp", (Ref(1),))))
    mask = made.joint.inputs[1]
    assert (mask.source_name, mask.value.dtype, mask.data is not None) == ("random_0", "bool", True)
    first, second = (materialize(made.joint)(**make_inputs(made.joint)) for _ in range(2))
    assert torch.equal(first[1], second[1])
    assert made.largest_t is not None and made.largest_t < -5


def test_buffer_writes_are_outputs() -> None:
    made = backward(CASES["batch norm in training"])
    outputs = json.loads(made.provenance.metadata)["outputs"]
    assert outputs[:2] == ["new value of `buffer_0`", "new value of `buffer_1`"]


def test_numbers_of_the_capture_are_written_into_the_graph() -> None:
    two = Input("scalar", Value("int64", ()), data=(2).to_bytes(8, "little"))
    made = backward(graph(Op("torch.mul", (Ref(0), Ref(1))), inputs=(X, two)))
    assert [each.role for each in made.inputs] == ["input", "input"]


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (
            graph(Op("torch.neg", (Ref(0),)), inputs=(INDICES,)),
            "`test/whole` has no floating-point inputs or parameters to differentiate.",
        ),
        (
            graph(Op("torch.sign", (Ref(0),)), Op("torch.Tensor.long", (Ref(1),))),
            "No output of `test/whole` depends on an input or weight that has a gradient.",
        ),
        (
            graph(Op("torch.nonzero", (Ref(0),)), Op("torch.Tensor.float", (Ref(1),))),
            "No output of `test/whole` depends on an input or weight that has a gradient.",
        ),
    ],
)
def test_graphs_without_gradients_are_refused(sample: Sample, message: str) -> None:
    with pytest.raises(GradientError) as caught:
        backward(sample)
    assert str(caught.value) == message


def test_a_gradient_that_is_not_finite_is_refused() -> None:
    negative = dataclasses.replace(X, statistics=Statistics(-1.0, 0.0, -1.0, -1.0))
    with pytest.raises(GradientError, match="is not finite"):
        backward(graph(Op("torch.sqrt", (Ref(0),)), inputs=(negative,)))


def test_kinds_are_a_closed_list() -> None:
    with pytest.raises(SampleError, match="Choose one of joint, forward, backward"):
        backward(LAYER, "sideways")  # type: ignore[arg-type]
    with pytest.raises(SampleError, match="has kind 'sideways'"):
        dataclasses.replace(LAYER, kind="sideways")  # type: ignore[arg-type]


def test_unchecked_operators_stay_unchecked() -> None:
    sample = graph(Op("torch.ops.aten._cdist_backward.default", (Ref(0),) * 5))
    with pytest.raises(UncheckedOperatorError):
        backward(sample)


def test_tolerances_are_those_of_scores() -> None:
    assert {name: ATOL_RTOL_EXPONENTS[name] for name in EXPONENTS} == EXPONENTS
    expected = torch.tensor([1.0, 100.0, -3.0])
    actual = expected + torch.tensor([1e-4, 0.0, 2e-6])
    exact = min_t(actual.numpy(), expected.numpy(), "float32")
    assert exact <= t_of(actual, expected) <= exact + 0.01


@pytest.mark.parametrize("target", ["torch.gru", "torch.ops.aten.gru.input"])
def test_a_long_recurrent_layer_is_refused_before_it_is_unrolled(target: str) -> None:
    sample = graph(
        Op(target, (Ref(0), Ref(1), ListArg((Ref(2), Ref(3))), *GRU)),
        Op("operator.getitem", (Ref(4), 0)),
        inputs=(
            Input("input", Value("float32", (1_000_000, 1, 1))),
            Input("input", Value("float32", (1, 1, 1))),
            Input("parameter", Value("float32", (3, 1))),
            Input("parameter", Value("float32", (3, 1))),
        ),
    )
    with pytest.raises(GradientError, match="unroll 1,000,000 steps"):
        backward(sample, check=False)
