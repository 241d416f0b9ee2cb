"""Limits of memory and time hold before either is taken."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.errors import MaterializeError, MemoryLimitError, TimeLimitError
from graphnet_datasets.frameworks.torch.costs import measure
from graphnet_datasets.frameworks.torch.walking import recurrent
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from tests.frameworks.paddle.installed import paddle

NUMBER = Input("input", Value("int64", ()))
MATRIX = Input("input", Value("float32", (8, 8)))


def sample_of(*ops: Op, inputs: tuple[Input, ...], framework: Any = "torch") -> Sample:
    return Sample("example/bomb", framework, "other", inputs, ops, Ref(len(inputs) + len(ops) - 1))


@pytest.mark.parametrize("count", [Ref(0), Ref(1)], ids=["tensor", "its number"])
@pytest.mark.parametrize(
    "operands", [("%1500000000d",), (ListArg((0,)),), ((1, 2),)], ids=["text", "list", "tuple"]
)
def test_python_builds_nothing_out_of_a_tensor(operands: tuple[Any, ...], count: Ref) -> None:
    target = "operator.mod" if isinstance(operands[0], str) else "operator.mul"
    item = Op("torch.Tensor.item", (Ref(0),))
    with pytest.raises(MemoryLimitError):
        materialize(sample_of(item, Op(target, (*operands, count)), inputs=(NUMBER,)))


@pytest.mark.parametrize(
    "op",
    [
        Op("torch.linalg.matrix_power", (Ref(0), 10**18)),
        Op("torch.matrix_power", (Ref(0), -(10**9))),
        Op("torch.Tensor.matrix_power", (Ref(0),), (("n", 2**62),)),
    ],
)
def test_loops_that_an_argument_counts_are_bounded(op: Op) -> None:
    with pytest.raises(TimeLimitError, match="loops more than 10000 times"):
        materialize(sample_of(op, inputs=(MATRIX,)))


@pytest.mark.parametrize("size", [2**31, 2**62, (2**40,)])
@pytest.mark.parametrize("target", ["torch.max_pool1d", "torch.nn.functional.max_pool1d"])
def test_windows_beyond_their_input_are_refused(target: str, size: Any) -> None:
    with pytest.raises(TimeLimitError, match="visits windows of more than 10000 elements"):
        materialize(sample_of(Op(target, (Ref(0), size, 2)), inputs=(MATRIX,)))


@pytest.mark.parametrize("size", [2**31, 2**62, (2**40,)])
def test_windows_of_norms_beyond_their_input_are_refused(size: Any) -> None:
    op = Op("torch.nn.functional.lp_pool1d", (Ref(0), 2.0, size))
    with pytest.raises(TimeLimitError, match="visits windows of more than 10000 elements"):
        materialize(sample_of(op, inputs=(MATRIX,)))


@pytest.mark.parametrize("target", ["torch.nn.functional.adaptive_avg_pool3d",
                                    "torch.ops.aten._adaptive_avg_pool3d.default"])  # fmt: skip
def test_empty_results_of_huge_sizes_are_refused(target: str) -> None:
    empty = Input("input", Value("float32", (3, 3, 8, 8, 6)))
    op = Op(target, (Ref(0), ListArg((2**31, 7, 0))))
    with pytest.raises(TimeLimitError, match="visits windows"):
        materialize(sample_of(op, inputs=(empty,)), allow_unchecked_operators=True)


@pytest.mark.parametrize("name", ["pca_lowrank", "svd_lowrank"])
def test_loops_in_python_are_bounded(name: str) -> None:
    op = Op(f"torch.{name}", (Ref(0),), (("niter", 10**9),))
    with pytest.raises(TimeLimitError):
        materialize(sample_of(op, inputs=(MATRIX,)), allow_unchecked_operators=True)


def test_a_walk_stops_when_its_time_is_over() -> None:
    ops = [Op("torch.relu", (Ref(at),)) for at in range(3)]
    with pytest.raises(TimeLimitError, match="Increase it, or skip the sample"):
        materialize(sample_of(*ops, inputs=(MATRIX,)), time_limit_s=0.0)
    with pytest.raises(TimeLimitError, match="Generating the inputs"):
        make_inputs(sample_of(*ops, inputs=(MATRIX,)), time_limit_s=0.0)


@pytest.mark.parametrize("framework", ["torch", pytest.param("paddle", marks=pytest.mark.paddle)])
@pytest.mark.parametrize(
    "value",
    [Value("int32", (400_000_000,), (0,)), Value("int8", (2**40, 3)), Value("bool", (0, 2**62))],
)
def test_inputs_beyond_the_limit_are_our_error(framework: str, value: Value) -> None:
    assert framework == "torch" or paddle
    sample = sample_of(inputs=(Input("input", value),), framework=framework)
    with pytest.raises(MemoryLimitError, match="Raise `memory_limit_bytes`, or skip the sample"):
        make_inputs(sample, memory_limit_bytes=10**8)


def recurrent_sample(steps: int) -> Sample:
    shapes = [(2, steps, 4), (2, 2, 3), (2, 2, 3)]
    for fed in (4, 3):
        shapes += [(12, fed), (12, 3), (12,), (12,)]
    inputs = tuple(Input("input", Value("float32", shape)) for shape in shapes)
    refs = tuple(map(Ref, range(len(shapes))))
    args = (refs[0], ListArg(refs[1:3]), ListArg(refs[3:]), True, 2, 0.0, False, False, True)
    return sample_of(Op("torch.lstm", args), inputs=inputs)


def test_extrapolated_shapes_agree_with_unrolling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extrapolated = measure(recurrent_sample(30))
    with monkeypatch.context() as patch:
        patch.setattr("graphnet_datasets.frameworks.torch.walking.walk.WALKED_STEPS", (4, 10**9))
        assert measure(recurrent_sample(30)) == extrapolated
    module = materialize(recurrent_sample(30))
    outputs = module(**make_inputs(recurrent_sample(30)))
    shapes = [tuple(each.shape) for each in outputs]
    assert shapes == [value.shape for value in extrapolated.footprint.results[0] or ()]
    assert recurrent.WALKED_STEPS == (4, 8)


@pytest.mark.usefixtures("second_per_look")
def test_a_long_sequence_is_not_unrolled() -> None:
    materialize(recurrent_sample(1_000_000), time_limit_s=10_000.0)


def test_hidden_states_fit_their_layer() -> None:
    sample = recurrent_sample(5)
    wrong = (*sample.inputs[:2], Input("input", Value("float32", (2, 2, 300))), *sample.inputs[3:])
    with pytest.raises(MaterializeError, match="weights with weight 0 of shape"):
        materialize(sample_of(*sample.ops, inputs=wrong))


@pytest.mark.paddle
@pytest.mark.parametrize(
    "op",
    [
        Op("operator.mul", ("a", 10**10)), Op("operator.mul", (ListArg((0,)), 10**10)),
        Op("operator.pow", (9, 9**9)), Op("paddle._C_ops.tile", (Ref(0), ListArg((2**20, 2**20)))),
    ],
)  # fmt: skip
def test_paddle_builds_nothing_huge(op: Op) -> None:
    assert paddle
    sample = sample_of(op, inputs=(MATRIX,), framework="paddle")
    with pytest.raises(MaterializeError):
        module = materialize(sample)
        module(**make_inputs(sample))


@pytest.mark.slow
@pytest.mark.paddle
@pytest.mark.usefixtures("second_per_look")
def test_preparing_a_graph_of_paddle_ends_in_time() -> None:
    assert paddle
    ops = [Op("paddle._C_ops.relu", (Ref(at),)) for at in range(20_000)]
    chain = sample_of(*ops, inputs=(MATRIX,), framework="paddle")
    for limit, phase in ((0.0, "Planning the calls"), (25_000.0, "Finding the shapes")):
        with pytest.raises(TimeLimitError, match=f"{phase} .* Increase it, or skip the sample"):
            materialize(chain, time_limit_s=limit)
    weight = sample_of(inputs=(Input("parameter", Value("float32", (2**29,))),), framework="paddle")
    with pytest.raises(TimeLimitError, match="Making the weights"):
        materialize(weight, weights="parameters", time_limit_s=3.0)
    with pytest.raises(TimeLimitError, match="Generating the inputs"):
        make_inputs(weight, time_limit_s=3.0)


@pytest.mark.paddle
@pytest.mark.parametrize(
    "op",
    [
        Op("paddle._C_ops.unbind", (Ref(0), 0)),
        Op("paddle._C_ops.split_with_num", (Ref(0), 10**8, 0)),
        Op("paddle._C_ops.pow", (Ref(0), 1e9)),
        Op("paddle._C_ops.repeat_interleave", (Ref(0), 10**9, 0, -1)),
        Op("paddle._C_ops.eye", (-1, -1, Named("dtype", "float32"), Named("place", "cpu"))),
    ],
)
def test_arguments_that_make_a_paddle_call_long_are_refused(op: Op) -> None:
    assert paddle
    long = Input("input", Value("int8", (10**8,)))
    with pytest.raises(MaterializeError, match=r"paddle\._C_ops"):
        module = materialize(sample_of(op, inputs=(long,), framework="paddle"))
        module(paddle.zeros([2], "int8"))
