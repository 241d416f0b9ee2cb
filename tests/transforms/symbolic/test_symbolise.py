"""Which dimensions vary, what their literals become, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.errors import MemoryLimitError, TransformError
from graphnet_datasets.sample import Input, Op, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref, SliceArg
from graphnet_datasets.transforms import reify, symbolise
from graphnet_datasets.transforms.symbolic import FixedSizesError
from tests.transforms.runners import runner_of
from tests.transforms.test_cut import small_graphs

EVERY = SliceArg(None, None, None)


def graph(*ops: Op, inputs: tuple[Input, ...], outputs: Any = None) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs)


def tensor(*shape: int, dtype: str = "float32") -> Input:
    return Input("input", Value(dtype, shape))


def weight(*shape: int) -> Input:
    return Input("parameter", Value("float32", shape), statistics=Statistics(0.0, 0.1))


def shape_at(sample: Sample, **sizes: int) -> tuple[int, ...]:
    made = reify(sample, sizes)
    (output,) = materialize(made)(**make_inputs(made))
    return tuple(output.shape)


def test_a_table_of_positions_is_cut_as_long_as_the_sequence_and_bounds_it() -> None:
    table = Input("buffer", Value("float32", (1, 40, 8)))
    whole = graph(
        Op("operator.getitem", (Ref(1), (EVERY, SliceArg(None, 12, None)))),
        Op("operator.add", (Ref(0), Ref(2))),
        inputs=(tensor(2, 12, 8), table),
    )
    found = symbolise(whole)
    bounds = {each.name: (each.lower, each.upper) for each in found.sample.symbols}
    assert bounds == {"batch": (1, None), "sequence": (1, 40)}
    assert shape_at(found.sample, batch=3, sequence=40) == (3, 40, 8)
    assert [(each.name, each.operator, each.position) for each in found.refused] == [
        ("sequence_2", "operator.add", 1)
    ]


def test_a_literal_is_settled_by_later_operators() -> None:
    """The 8 of the first range is a number of channels, that of the second one the sequence."""
    whole = graph(
        Op("torch.arange", (0, 8), (("dtype", Named("dtype", "float32")),)),
        Op("operator.mul", (Ref(1), Ref(2))),  # beside a weight of eight
        Op("torch.zeros", (2, 8, 8)),
        Op("operator.add", (Ref(0), Ref(3))),
        Op("torch.cat", ((Ref(5), Ref(4)), 1)),
        inputs=(tensor(2, 8, 8), weight(8)),
    )
    found = symbolise(whole)
    assert shape_at(found.sample, batch=3, sequence=5) == (3, 10, 8)


def test_an_image_of_patches_has_multiples_of_the_window_alone() -> None:
    whole = graph(
        Op("torch.Tensor.view", (Ref(0), 1, 3, 4, 4, 6, 4)),
        Op("torch.Tensor.mean", (Ref(1), (3, 5))),
        inputs=(tensor(1, 3, 16, 24),),
    )
    found = symbolise(whole)
    assert [f"{each.left} {each.relation} {each.right}" for each in found.sample.constraints] == [
        "Mod(height, 4) == 0",
        "Mod(width, 4) == 0",
    ]
    assert shape_at(found.sample, batch=2, height=40, width=8) == (2, 3, 10, 2)


def test_height_and_width_that_are_equal_by_a_weight_vary_together_or_not_at_all() -> None:
    whole = graph(
        Op("torch.Tensor.flatten", (Ref(0), 1)),
        Op("torch.nn.functional.linear", (Ref(2), Ref(1))),
        inputs=(tensor(2, 3, 8, 8), weight(5, 192)),
    )
    found = symbolise(whole)
    assert [each.name for each in found.sample.symbols] == ["batch"]
    (refused,) = found.refused
    assert (refused.kind, refused.operator) == ("spatial", "torch.nn.functional.linear")


def test_fixed_dimensions_are_refused_with_the_operator() -> None:
    whole = graph(Op("operator.add", (Ref(0), Ref(1))), inputs=(tensor(4, 6), weight(4, 6)))
    message = "No dimension of `test/whole` can vary. With another `batch` than 4, operator 0 ("
    with pytest.raises(FixedSizesError, match=re.escape(message)) as caught:
        symbolise(whole)
    assert caught.value.operator == "operator.add"
    assert caught.value.reason == "its batch is fixed"
    assert [each.name for each in caught.value.refused] == ["batch", "sequence"]


def test_a_graph_without_data_inputs_has_no_dimension_that_could_vary() -> None:
    with pytest.raises(TransformError, match="has no data input with a dimension"):
        symbolise(graph(Op("torch.relu", (Ref(0),)), inputs=(weight(4, 6),)))


def test_only_a_run_tells_that_indices_reach_beyond_a_table() -> None:
    whole = graph(
        Op("torch.arange", (9,)),
        Op("torch.nn.functional.embedding", (Ref(2), Ref(1))),
        Op("operator.add", (Ref(0), Ref(3))),
        inputs=(tensor(2, 9, 4), weight(9, 4)),
    )
    found = symbolise(whole)
    assert next(each.upper for each in found.sample.symbols if each.name == "sequence") == 9
    assert all(sizes["sequence"] < 9 for sizes in found.checked if "sequence" in sizes)


def test_symbols_that_a_graph_has_stay_and_others_come_to_them() -> None:
    value = Value("float32", ("s0", 6, 4))
    whole = Sample(
        "test/whole",
        "torch",
        "other",
        (Input("input", value), Input("symbol", Value("int64", ()), source_name="s0")),
        (Op("torch.Tensor.view", (Ref(0), Ref(1), 24)),),
        (Ref(2),),
        (Symbol("s0", 3, 2, 64),),
    )
    found = symbolise(whole)
    assert [each.name for each in found.sample.symbols] == ["s0", "sequence", "sequence_2"]
    assert shape_at(found.sample, s0=5, sequence=7, sequence_2=2) == (5, 14)


def test_parts_add_up_to_the_axis_that_varies() -> None:
    whole = graph(
        Op("torch.cat", ((Ref(0), Ref(1)), 1)),
        Op("torch.split", (Ref(2), ListArg((5, 7))), (("dim", 1),)),
        Op("operator.getitem", (Ref(3), 1)),
        inputs=(tensor(2, 5, 4), tensor(2, 7, 4)),
    )
    found = symbolise(whole)
    assert [each.hint for each in found.sample.symbols] == [2, 5, 4, 7]
    assert shape_at(found.sample, batch=1, sequence=3, sequence_3=9) == (1, 9, 4)


def test_sizes_of_a_hostile_graph_stop_at_a_limit() -> None:
    huge = graph(Op("torch.relu", (Ref(0),)), inputs=(tensor(2**40, 2**20),))
    with pytest.raises((MemoryLimitError, TransformError)):
        symbolise(huge, memory_limit_bytes=2**30)
    many = graph(*(Op("torch.relu", (Ref(i),)) for i in range(3000)), inputs=(tensor(4, 4),))
    with pytest.raises(FixedSizesError, match="takes longer than `time_limit_s`"):
        symbolise(many, check=False, time_limit_s=0.05)


def test_rows_that_stand_beside_one_another_are_all_repeated_for_the_batch() -> None:
    """At a batch of one each of the two expansions could be one of nothing, if the other is too."""
    whole = graph(
        Op("torch.Tensor.expand", (Ref(1), 1, -1, -1)),
        Op("torch.Tensor.expand", (Ref(2), 1, -1, -1)),
        Op("torch.cat", (ListArg((Ref(3), Ref(0), Ref(4))), 1)),
        inputs=(tensor(1, 7, 4), weight(1, 1, 4), weight(1, 3, 4)),
    )
    found = symbolise(whole)
    assert found.kinds["batch"] == "batch"
    assert shape_at(found.sample, batch=5) == (5, 11, 4)


def test_a_mask_of_windows_is_repeated_for_the_batch() -> None:
    """Behind a size that is left open, literals stand in the place of the operand's last axes."""
    whole = graph(
        Op("torch.Tensor.expand", (Ref(1), 1, -1, -1, -1)),
        Op("torch.Tensor.reshape", (Ref(2), -1, 1, 5)),
        Op("torch.Tensor.reshape", (Ref(0), -1, 3, 5)),
        Op("operator.add", (Ref(4), Ref(3))),
        inputs=(tensor(1, 4, 3, 5), weight(1, 4, 1, 5)),
    )
    found = symbolise(whole)
    assert found.kinds["batch"] == "batch"
    assert shape_at(found.sample, batch=6) == (24, 3, 5)


@pytest.mark.paddle
def test_tables_of_positions_of_paddle_follow_the_sequence() -> None:
    """Its `arange` takes bounds that other operators make, as numbers in float64."""
    double, single = Named("dtype", "float64"), ListArg((1,))
    place = Named("place", "cpu")
    bounds = [Op("paddle._C_ops.full", (single, bound, double, place)) for bound in (0.0, 9.0, 1.0)]
    whole = Sample(
        "test/positions",
        "paddle",
        "nlp",
        (
            Input("input", Value("int64", (2, 9)), statistics=Statistics(2.0, 1.0, 0.0, 5.0)),
            weight(6, 4),
            weight(32, 4),
        ),
        (
            Op("paddle._C_ops.embedding", (Ref(0), Ref(1), -1, False)),
            *bounds,
            Op(
                "paddle._C_ops.arange",
                (Ref(4), Ref(5), Ref(6), Named("dtype", "int64"), Named("place", "expected")),
            ),
            Op("paddle._C_ops.embedding", (Ref(7), Ref(2), -1, False)),
            Op("paddle._C_ops.add", (Ref(3), Ref(8))),
        ),
        (Ref(9),),
    )
    found = symbolise(whole, allow_unchecked_operators=True)
    (sequence,) = (each for each in found.sample.symbols if each.name == "sequence")
    assert sequence.hint == 9
    assert {each["sequence"] for each in map(dict, found.checked)} - {9}


@pytest.mark.parametrize("framework", ["torch", pytest.param("paddle", marks=pytest.mark.paddle)])
def test_embedded_graphs_at_their_own_sizes_give_their_bits_and_run_at_others(
    framework: str,
) -> None:
    samples = small_graphs(framework, 12)
    runner = runner_of(framework)
    generator = np.random.default_rng(2)
    shown = 0
    for index in generator.permutation(len(samples))[:4]:
        sample = samples[index]
        if sample.input_bytes > 2**20:
            continue
        try:
            found = symbolise(sample, allow_unchecked_operators=True)
        except TransformError:
            continue
        shown += 1
        assert len(found.checked) == 3
        same = reify(found.sample)
        values = list(runner.make_inputs(sample, 0).values())
        kept = [
            value
            for value, each in zip(values, sample.inputs, strict=True)
            if each.role != "symbol"
        ]
        runner.seed(0)
        expected = runner.materialize(sample)(values)
        runner.seed(0)
        assert runner.is_same(runner.materialize(same)(kept), expected), sample.id
    assert shown >= 1


def test_random_sizes_within_the_ranges_run() -> None:
    whole = graph(
        Op("torch.conv1d", (Ref(0), Ref(1), None, (3,), (2,))),
        Op("torch.Tensor.view", (Ref(2), 2, 8, 11)),
        Op("torch.Tensor.expand", (Ref(3), 2, -1, 11)),
        Op("torch.Tensor.reshape", (Ref(4), 16, 11)),
        inputs=(tensor(2, 4, 32), weight(8, 4, 4)),
    )
    found = symbolise(whole)
    generator = np.random.default_rng(0)
    for _ in range(12):
        batch, length = (int(each) for each in generator.integers((1, 1), (9, 200)))
        assert shape_at(found.sample, batch=batch, sequence_2=length) == (
            8 * batch,
            length // 3 + 1,
        )
