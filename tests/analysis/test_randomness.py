"""Outputs that depend on random numbers which a graph draws itself."""

from __future__ import annotations

import dataclasses

import pytest

from graphnet_datasets.analysis.randomness import is_random, random_inputs, random_outputs
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Arg, DictArg, ListArg, Ref

TENSOR = Input("input", Value("float32", (2, 3)))
F = "torch.nn.functional."
SDPA = "torch.ops.aten._scaled_dot_product"
RELU = Op("torch.relu", (Ref(0),))
NOISE = Op("torch.rand_like", (Ref(0),))
ATTENTION = Op(
    f"{F}multi_head_attention_forward",
    (*[Ref(0)] * 3, 4, 2, Ref(0), None, None, None, False, 0.1, Ref(0), None),
)


def sample(*ops: Op, outputs: Arg = None, framework: str = "torch") -> Sample:
    last = Ref(len(ops)) if outputs is None else outputs
    return Sample("a/b", framework, "other", (TENSOR,), ops, last)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Op(f"{F}dropout", (Ref(0), 0.5)), True),
        (Op(f"{F}dropout", (Ref(0), 0.5, False, False)), False),
        (Op(f"{F}dropout", (Ref(0), 0.0, True, False)), False),
        (Op(f"{F}dropout", (Ref(0),), (("p", 0.0), ("training", True))), False),
        (Op("torch.ops.aten.native_dropout.default", (Ref(0), 0, True)), False),
        (Op("torch.ops.aten.native_dropout.default", (Ref(0), 0.1, True)), True),
        (Op(f"{F}feature_alpha_dropout", (Ref(0), 0.5, True)), True),
        (Op(f"{F}rrelu", (Ref(0), 0.1, 0.3, True)), True),
        (Op(f"{F}rrelu", (Ref(0), 0.1, 0.3, False)), False),
        (Op(f"{F}gumbel_softmax", (Ref(0),)), True),
        (Op("torch.randperm", (3,)), True),
        (Op("torch.multinomial", (Ref(0), 1)), True),
        (Op("torch.bernoulli", (Ref(0),)), True),
        (Op("torch.Tensor.normal_", (Ref(0),)), True),
        (Op("torch.Tensor.exponential_", (Ref(0),)), True),
        (Op(f"{F}scaled_dot_product_attention", (Ref(0),) * 3, (("dropout_p", 0.1),)), True),
        (Op(f"{F}scaled_dot_product_attention", (Ref(0),) * 3, (("dropout_p", 0.0),)), False),
        (Op(f"{SDPA}_flash_attention.default", ((Ref(0),) * 3 + (0.1, True))), True),
        (Op(f"{SDPA}_flash_attention.default", ((Ref(0),) * 3 + (0.0, True))), False),
        (Op(f"{SDPA}_efficient_attention.default", ((Ref(0),) * 3 + (None, True, 0.1))), True),
        (Op(f"{SDPA}_efficient_attention.default", ((Ref(0),) * 3 + (None, True))), False),
        (Op(f"{SDPA}_cudnn_attention.default", ((Ref(0),) * 3 + (None, False, 0.1))), True),
        (Op(f"{SDPA}_attention_math.default", ((Ref(0),) * 3 + (None, 0.1))), True),
        (Op("torch.rrelu", (Ref(0), 0.1, 0.3, True)), True),
        (Op("torch.rrelu", (Ref(0), 0.1, 0.3)), False),
        (Op("torch.ops.aten.rrelu_with_noise.default", (Ref(0), Ref(0), 0.1, 0.3, True)), True),
        (Op("torch.lstm", (Ref(0), Ref(0), Ref(0), True, 2, 0.1, True, False, True)), True),
        (Op("torch.lstm", (Ref(0), Ref(0), Ref(0), True, 2, 0.0, True, False, True)), False),
        (Op("torch.lstm", (Ref(0), Ref(0), Ref(0), True, 2, 0.1, False, False, True)), False),
        (Op("torch.lstm", (Ref(0), Ref(0), Ref(0), True, 1, 0.1, True, False, True)), False),
        (ATTENTION, True),
        (dataclasses.replace(ATTENTION, kwargs=(("training", False),)), False),
        (dataclasses.replace(ATTENTION, args=(*ATTENTION.args[:10], 0.0, Ref(0), None)), False),
        (RELU, False),
    ],
    ids=str,
)
def test_a_torch_operator_makes_its_graph_random(op: Op, expected: bool) -> None:
    assert is_random(sample(op)) is expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Op("paddle._C_ops.uniform", (ListArg((2, 3)), "float32", 0.0, 1.0, 0)), True),
        (Op("paddle._C_ops.gaussian", (ListArg((2, 3)), 0.0, 1.0, 0, "float32")), True),
        (Op("paddle._C_ops.dropout", (Ref(0), None, 0.5, False, "a", 0, False)), True),
        (Op("paddle._C_ops.dropout", (Ref(0), None, 0.5, True, "a", 0, False)), False),
        (Op("paddle._C_ops.dropout", (Ref(0), None, 0.0, False, "a", 0, False)), False),
        (Op("paddle._C_ops.relu", (Ref(0),)), False),
    ],
    ids=str,
)
def test_a_paddle_operator_makes_its_graph_random(op: Op, expected: bool) -> None:
    assert is_random(sample(op, framework="paddle")) is expected


def test_a_draw_that_reaches_no_output_does_not_count() -> None:
    assert not is_random(sample(NOISE, RELU))
    assert is_random(sample(NOISE, RELU, Op("torch.add", (Ref(1), Ref(2)))))


def test_random_outputs_are_listed_in_flat_order() -> None:
    outputs = DictArg((("a", ListArg((Ref(2), None, Ref(1)))), ("b", 1), ("c", Ref(0))))
    assert random_outputs(sample(NOISE, RELU, outputs=outputs)) == (False, True, False, False)


def test_noise_is_followed_through_memory() -> None:
    view = Op("torch.Tensor.view", (Ref(2), 6))
    write = Op("torch.Tensor.mul_", (Ref(2), Ref(1)))
    ops = (NOISE, RELU, view, write, Op("torch.exp", (Ref(3),)))
    assert random_outputs(sample(*ops, outputs=(Ref(5), Ref(3), Ref(0)))) == (True, True, False)


def test_an_input_that_noise_is_written_to_counts() -> None:
    write = Op("torch.Tensor.add_", (Ref(0), Ref(1)))
    assert is_random(sample(NOISE, write, Op("torch.tanh", (Ref(1),)), outputs=3))


def test_shapes_of_noise_are_no_noise() -> None:
    ops = (NOISE, Op("torch.zeros_like", (Ref(1),)))
    assert not is_random(sample(*ops))
    chosen = Op("torch.masked_select", (Ref(0), Ref(1)))
    assert is_random(sample(NOISE, chosen, Op("torch.zeros_like", (Ref(2),))))


def test_each_result_of_an_operator_is_an_output() -> None:
    value = Value("float32", (2, 3))
    sizes = Op("torch.aminmax", (Ref(0),), results=(value, value))
    size = Op("torch.Tensor.size", (Ref(0), 0), results=())
    noise = dataclasses.replace(NOISE, results=(value,))
    graph = sample(sizes, size, noise, outputs=(Ref(1), Ref(2), Ref(3)))
    assert random_outputs(graph) == (False, False, False, True)


def test_a_counter_beside_noise_is_not_random() -> None:
    inputs = tuple(Input("buffer", Value(dtype, ())) for dtype in ("float32", "float32", "int64"))
    ops = (
        Op("torch.rand_like", (Ref(0),)),
        Op("torch.Tensor.copy_", (Ref(0), Ref(3))),
        Op("torch.Tensor.mul_", (Ref(1), 2)),
        Op("torch.Tensor.add_", (Ref(2), 1)),
    )
    graph = Sample("a/b", "torch", "other", inputs, ops, Ref(1))
    assert random_inputs(graph) == (True, False, False)
    assert is_random(graph) and random_outputs(graph) == (False,)
