"""Tags and the histogram of operators."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from graphnet_datasets.analysis.tags import TAGS, op_histogram, op_tags
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import Ref
from tests import embedded
from tests.strategies import samples

X = Input("input", Value("float32", (4, 4)))


def graph(*ops: Op, framework: Any = "torch", symbols: tuple[Symbol, ...] = ()) -> Sample:
    return Sample("test/tags", framework, "other", (X,), ops, Ref(len(ops)), symbols)


def call(target: str, *args: Any, module: str = "", **kwargs: Any) -> Op:
    return Op(target, args or (Ref(0),), tuple(kwargs.items()), module=module)


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([call("torch.conv2d")], {"convolution"}),
        ([call("torch.nn.functional.conv_transpose1d")], {"convolution"}),
        ([call("torch.ops.aten.convolution.default")], {"convolution"}),
        ([call("torch.nn.functional.layer_norm")], {"norm"}),
        ([call("torch.nn.functional.group_norm")], {"norm"}),
        ([call("torch.rms_norm")], {"norm"}),
        ([call("torch.ops.aten.native_layer_norm.default")], {"norm"}),
        ([call("torch.linalg.vector_norm")], set()),
        ([call("torch.nn.functional.max_pool2d")], {"pooling"}),
        ([call("torch.nn.functional.embedding")], {"embedding"}),
        ([call("torch.nn.functional.linear")], {"matmul"}),
        ([call("operator.matmul", Ref(0), Ref(0))], {"matmul"}),
        ([call("torch.ops.aten.addmm.default")], {"matmul"}),
        ([call("torch.ops.aten.baddbmm.default")], {"matmul"}),
        ([call("torch._grouped_mm")], {"matmul", "moe"}),
        ([call("torch.lstm")], {"recurrent", "random"}),
        ([call("torch.fft.rfft2")], {"fourier"}),
        ([call("torch.stft")], {"fourier"}),
        ([call("torch.topk")], {"sort"}),
        ([call("torch.gather")], {"scatter_gather"}),
        ([call("torch.relu_")], {"in_place"}),
        ([call("torch.nn.functional.relu", inplace=True)], {"in_place"}),
        ([call("torch.nn.functional.dropout", training=False)], set()),
        ([call("torch.nn.functional.dropout", training=True)], {"random"}),
        ([call("torch.relu", module="layers.0.experts.3")], {"moe"}),
        ([call("torch.relu", module="remote.expertise")], set()),
        ([call("torch.topk"), call("torch.Tensor.index_add_")],
         {"moe", "sort", "in_place", "scatter_gather"}),
        ([call("torch.nn.functional.scaled_dot_product_attention")], {"attention"}),
        ([call("torch.matmul", Ref(0), Ref(0)), call("operator.mul", Ref(1), 0.5),
          call("torch.softmax", Ref(2), -1), call("torch.Tensor.to", Ref(3)),
          call("torch.matmul", Ref(4), Ref(0))], {"attention", "matmul"}),
        ([call("torch.matmul", Ref(0), Ref(0)), call("torch.softmax", Ref(1), -1)], {"matmul"}),
        ([call("torch.softmax"), call("torch.matmul", Ref(1), Ref(0))], {"matmul"}),
    ],
)  # fmt: skip
def test_tags_of_operators(ops: list[Op], expected: set[str]) -> None:
    assert set(op_tags(graph(*ops))) == expected


def test_symbols_make_a_graph_dynamic() -> None:
    symbols = (Symbol("s0", 2),)
    rows = Value("float32", ("s0", 3))
    relu = Op("torch.relu", (Ref(0),), results=(rows,))
    followed = Sample(
        "test/tags", "torch", "other", (Input("input", rows),), (relu,), Ref(1), symbols
    )
    assert op_tags(followed) == ["dynamic"]
    # Declared alone, a symbol says nothing: the graph has its sizes as literals.
    assert op_tags(graph(call("torch.relu"), symbols=symbols)) == []


def test_operators_of_paddle_have_tags_too() -> None:
    ops = [call("paddle.nn.functional.conv2d"), call("paddle._C_ops.matmul")]
    assert op_tags(graph(*ops, framework="paddle")) == ["convolution", "matmul"]


def test_the_histogram_counts_each_operator() -> None:
    ops = [call("torch.relu"), call("torch.exp"), call("torch.relu"), call("torch.abs")]
    assert op_histogram(graph(*ops)) == [
        {"target": "torch.relu", "count": 2},
        {"target": "torch.abs", "count": 1},
        {"target": "torch.exp", "count": 1},
    ]


@settings(max_examples=20)
@given(samples())
def test_tags_are_of_the_vocabulary_and_the_histogram_adds_up(sample: Sample) -> None:
    assert set(op_tags(sample)) <= set(TAGS)
    assert sum(int(each["count"]) for each in op_histogram(sample)) == sample.num_ops


def test_the_embedded_graphs_have_the_tags_of_their_architectures() -> None:
    expected = {
        "torch/gru-language-model-small": {"recurrent", "embedding"},
        "torch/mobilenet-v2": {"convolution", "norm"},
        "transformers/albert-tiny": {"attention", "norm", "embedding", "matmul"},
        "torch/fno-1d": {"fourier"},
        "torch/gcn-small-dynamic": {"dynamic", "scatter_gather"},
    }
    found = embedded.samples(tuple(expected))
    for sample_id, tags in expected.items():
        assert tags <= set(op_tags(found[sample_id]))
