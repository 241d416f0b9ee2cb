"""Samples of some operators of a graph, and the graph put together out of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from graphnet_datasets import Sample, load_dataset, make_inputs, materialize
from graphnet_datasets.errors import SampleError
from graphnet_datasets.frameworks import observe
from graphnet_datasets.sample import Input, Op, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from graphnet_datasets.transforms import Cutter, Part, cut, recompose
from graphnet_datasets.transforms.recompose import in_order
from tests.transforms.partitions import partition
from tests.transforms.runners import runner_of

X = Input("input", Value("float32", (4, 6)))
AUTOCAST = "torch.amp.autocast_mode"
AUTOCAST_ON = ("cpu", Named("dtype", "bfloat16"), True, None)


def graph(*ops: Op, outputs: Any = None, inputs: tuple[Input, ...] = (X,), **more: Any) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs, **more)


DIAMOND = graph(
    Op("torch.exp", (Ref(0),)),
    Op("torch.relu", (Ref(1),)),
    Op("torch.abs", (Ref(1),)),
    Op("torch.add", (Ref(2), Ref(3))),
)


def small_graphs(framework: str, most: int) -> list[Sample]:
    filters = [("framework", "=", framework), ("num_ops", "<=", most), ("flops", "<=", 10**9)]
    rows = load_dataset("graphnet", "all", split="all", filters=filters)
    return [Sample.from_row(row) for row in rows if row["num_pieces"] is None]


def run_parts(whole: Sample, parts: list[Part]) -> dict[int, Any]:
    """Run parts one after the other, each once what it takes is there; return all values."""
    runner = runner_of(whole.framework)
    values = dict(enumerate(runner.make_inputs(whole, 0).values()))
    for part in parts:
        results = runner.materialize(part.sample)([values[value] for value in part.takes])
        values.update(zip(part.gives, results, strict=True))
    return values


@pytest.mark.parametrize("framework", ["torch", pytest.param("paddle", marks=pytest.mark.paddle)])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_embedded_graph_put_together_out_of_parts_gives_its_bits(
    framework: str, seed: int
) -> None:
    samples = small_graphs(framework, 40)
    runner = runner_of(framework)
    assert len(samples) >= 4
    generator = np.random.default_rng(seed)
    for index in generator.choice(len(samples), 4, replace=False):
        sample = samples[index]
        cutter = Cutter(sample)
        groups = partition(cutter, generator)
        parts = [cutter.cut(group) for group in groups]
        again = recompose(sample, parts)
        assert sorted(op.target for op in again.ops) == sorted(op.target for op in sample.ops)
        assert runner.is_same(runner.run(again), runner.run(sample)), sample.id


def test_parts_that_run_by_themselves_give_the_bits_of_the_whole() -> None:
    samples = small_graphs("torch", 30)
    for index in np.random.default_rng(3).choice(len(samples), 3, replace=False):
        sample = samples[index]
        runner = runner_of("torch")
        cutter = Cutter(sample)
        groups = partition(cutter, np.random.default_rng(1))
        parts = list(in_order(sample, [cutter.cut(group) for group in groups]))
        torch.manual_seed(0)
        values = run_parts(sample, parts)
        expected = runner.run(sample)
        refs = sample.outputs if isinstance(sample.outputs, tuple) else (sample.outputs,)
        expected = expected if isinstance(sample.outputs, tuple) else (expected,)
        for ref, whole in zip(refs, expected, strict=True):
            if isinstance(ref, Ref):
                assert runner.is_same(values[ref.index], whole), sample.id


def test_inputs_are_ordered_by_first_use_and_outputs_are_the_values_needed_outside() -> None:
    weight = Input("parameter", Value("float32", (6, 6)), "weight")
    whole = graph(
        Op("torch.relu", (Ref(0),)),
        Op("torch.matmul", (Ref(2), Ref(1))),
        Op("torch.mul", (Ref(3), Ref(0))),
        Op("torch.add", (Ref(3), Ref(4))),
        inputs=(X, weight),
    )
    part = cut(whole, [1, 2])
    assert part.takes == (2, 1, 0)
    assert [each.role for each in part.sample.inputs] == ["input", "parameter", "input"]
    assert part.sample.inputs[1] is not weight and part.sample.inputs[1] == weight
    assert part.gives == (3, 4)
    assert part.sample.outputs == (Ref(3), Ref(4))
    assert part.sample.kind == "subgraph"
    assert (part.sample.provenance.parent_id, part.sample.provenance.parent_ops) == (
        "test/whole", (1, 2),
    )  # fmt: skip


def test_crossing_values_have_statistics_of_a_run() -> None:
    part = cut(DIAMOND, [1, 2], seen=observe(DIAMOND))
    (crossing,) = part.sample.inputs
    assert crossing.statistics is not None
    assert crossing.statistics.is_measured
    assert crossing.statistics.min is not None and crossing.statistics.min > 0
    assert cut(DIAMOND, [1]).sample.inputs[0].statistics is None


def test_small_integers_that_cross_come_with_their_elements() -> None:
    whole = graph(
        Op("torch.arange", (4,)),
        Op("torch.index_select", (Ref(0), 0, Ref(1))),
    )
    part = cut(whole, [1], seen=observe(whole))
    assert part.sample.inputs[1].data == torch.arange(4).numpy().tobytes()
    assert torch.equal(make_inputs(part.sample)["input_1"], torch.arange(4))


@pytest.mark.parametrize("ops", [[0, 3], [0, 1, 3]])
def test_a_set_that_is_not_convex_is_refused_with_the_operator_between(ops: list[int]) -> None:
    with pytest.raises(SampleError, match=r"not convex: operator 3 depends on operator [12]"):
        cut(DIAMOND, ops)


@pytest.mark.parametrize("ops", [[0], [1, 2], [0, 1, 2], [1, 2, 3], [0, 1, 2, 3], [3]])
def test_any_convex_set_can_be_cut(ops: list[int]) -> None:
    part = cut(DIAMOND, ops)
    assert part.ops == tuple(ops)
    materialize(part.sample)(**make_inputs(part.sample))


def test_a_write_is_waited_for_under_every_name_of_its_memory() -> None:
    whole = graph(
        Op("torch.Tensor.view", (Ref(0), -1)),
        Op("torch.exp", (Ref(1),)),
        Op("torch.Tensor.add_", (Ref(0), 1)),
        Op("torch.abs", (Ref(1),)),
        outputs=(Ref(2), Ref(4)),
    )
    cutter = Cutter(whole)
    assert 2 in cutter.dependences[3] and 1 in cutter.dependences[2]
    with pytest.raises(SampleError, match="not convex"):
        cutter.cut([1, 3])


def test_random_operators_keep_their_order() -> None:
    whole = graph(
        Op("torch.rand_like", (Ref(0),)),
        Op("torch.rand_like", (Ref(0),)),
        Op("torch.rand_like", (Ref(0),)),
        outputs=(Ref(1), Ref(2), Ref(3)),
    )
    with pytest.raises(SampleError, match="not convex"):
        cut(whole, [0, 2])


def test_unpacking_operators_are_cut_with_their_tuple() -> None:
    whole = graph(
        Op("torch.chunk", (Ref(0), 2, 1)),
        Op("operator.getitem", (Ref(1), 0)),
        Op("operator.getitem", (Ref(1), 1)),
        Op("torch.add", (Ref(2), Ref(3))),
    )
    assert cut(whole, [0]).ops == (0, 1, 2)
    assert cut(whole, [0]).gives == (2, 3)
    with pytest.raises(SampleError, match=r"Operator 0 \(`torch.chunk`\).*Select both or neither"):
        cut(whole, [2])


def test_an_operator_in_a_region_takes_the_region_along() -> None:
    whole = graph(
        Op(f"{AUTOCAST}._enter_autocast", AUTOCAST_ON),
        Op("torch.matmul", (Ref(0), Ref(0))),
        Op("torch.matmul", (Ref(2), Ref(0))),
        Op(f"{AUTOCAST}._exit_autocast", (Ref(1),)),
        inputs=(Input("input", Value("float32", (6, 6))),),
        outputs=(Ref(3),),
    )
    part = cut(whole, [2])
    assert part.ops == (0, 2, 3)
    assert part.sample.inputs[0].value.dtype == "bfloat16"
    (product,) = materialize(part.sample)(**make_inputs(part.sample))
    assert product.dtype == torch.bfloat16


def test_symbols_have_the_sizes_of_the_capture() -> None:
    whole = graph(
        Op("torch.Tensor.size", (Ref(0), 0)),
        Op("torch.Tensor.reshape", (Ref(0), Ref(2), -1)),
        inputs=(Input("input", Value("float32", ("s0", 6))), Input("symbol", Value(), "s0")),
        symbols=(Symbol("s0", 4),),
        outputs=(Ref(3),),
    )
    part = cut(whole, [1])
    assert part.sample.symbols == ()
    assert part.sample.inputs == (Input("input", Value("float32", (4, 6))),)
    assert part.sample.ops[0].args == (Ref(0), 4, -1)


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ([], "No operators of `test/whole` were selected. Pass at least one position."),
        ([4], "`test/whole` has the operators 0 to 3, not 4."),
        ([-1], "`test/whole` has the operators 0 to 3, not -1."),
    ],
)
def test_missing_operators_are_refused(ops: list[int], message: str) -> None:
    with pytest.raises(SampleError, match=f"^{re.escape(message)}$"):
        cut(DIAMOND, ops)


def test_parts_that_do_not_make_the_whole_are_refused() -> None:
    cutter = Cutter(DIAMOND)
    with pytest.raises(SampleError, match="Operator 3 of `test/whole` is missing from the parts"):
        recompose(DIAMOND, [cutter.cut([0, 1, 2])])
    with pytest.raises(SampleError, match="Operator 1 of `test/whole` is in two of the parts"):
        recompose(DIAMOND, [cutter.cut([0, 1]), cutter.cut([1, 2, 3])])


def test_parts_that_wait_for_each_other_are_refused() -> None:
    whole = graph(
        Op("torch.exp", (Ref(0),)), Op("torch.abs", (Ref(0),)),
        Op("torch.relu", (Ref(1),)), Op("torch.neg", (Ref(2),)),
        outputs=(Ref(3), Ref(4)),
    )  # fmt: skip
    cutter = Cutter(whole)
    parts = [cutter.cut([0, 3]), cutter.cut([1, 2])]
    with pytest.raises(SampleError, match="depend on each other"):
        recompose(whole, parts)


def test_lists_of_crossing_values_are_kept() -> None:
    whole = graph(
        Op("torch.exp", (Ref(0),)),
        Op("torch.cat", (ListArg((Ref(0), Ref(1), Ref(0))), 1)),
    )
    part = cut(whole, [1])
    assert part.sample.ops[0].args == (ListArg((Ref(0), Ref(1), Ref(0))), 1)
    assert part.takes == (0, 1)
