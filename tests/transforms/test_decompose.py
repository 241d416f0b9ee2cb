"""Parts of a sample, run one after the other, give what the whole gives."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.errors import SampleError
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Named, Ref
from graphnet_datasets.transforms import Decomposition, decompose
from graphnet_datasets.transforms.decompose import find_cuts

X = Input("input", Value("float32", (4, 6)))


def graph(*ops: Op, outputs: Any = None, inputs: tuple[Input, ...] = (X,)) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs)


def run_parts(decomposition: Decomposition) -> list[torch.Tensor]:
    values = dict(enumerate(make_inputs(decomposition.whole).values()))
    for part in decomposition.parts:
        names = part.sample.input_names
        arguments = dict(zip(names, map(values.__getitem__, part.takes), strict=True))
        results = materialize(part.sample)(**arguments)
        values.update(zip(part.gives, results, strict=True))
    return [values[ref.index] for ref in decomposition.whole.outputs]  # type: ignore[union-attr]


MIXED = graph(
    Op("torch.Tensor.size", (Ref(0), 0)),
    Op("torch.relu", (Ref(0),)),
    Op("operator.mul", (Ref(1), 2)),
    Op("torch.chunk", (Ref(2), 2, 1)),
    Op("operator.getitem", (Ref(4), 1)),
    Op("torch.Tensor.add_", (Ref(5), 1.5)),
    Op("torch.Tensor.reshape", (Ref(2), (-1, 3))),
    Op("torch.Tensor.view", (Ref(7), Ref(3), -1)),
    Op("torch.exp", (Ref(5),)),
    outputs=(Ref(8), Ref(9), Ref(0)),
)
"""A number that crosses, a tuple that does not, and a write that is seen through another name."""


def test_cuts_lie_where_no_tuple_crosses() -> None:
    assert find_cuts(MIXED) == (1, 2, 3, 5, 6, 7, 8)


@pytest.mark.parametrize("cuts", [[cut] for cut in find_cuts(MIXED)] + [list(find_cuts(MIXED))])
def test_parts_give_the_bits_of_the_whole(cuts: list[int]) -> None:
    decomposition = decompose(MIXED, cuts=cuts)
    whole = materialize(MIXED)(**make_inputs(MIXED))
    for mine, theirs in zip(run_parts(decomposition), whole, strict=True):
        assert torch.equal(mine, theirs)


def test_parts_are_disjoint_and_keep_the_order() -> None:
    parts = decompose(MIXED, 3).parts
    assert len(parts) == 3
    targets = [op.target for part in parts for op in part.sample.ops]
    assert targets == [op.target for op in MIXED.ops]
    assert [part.sample.id for part in parts] == [f"test/whole/part_{i}" for i in range(3)]
    assert {part.sample.kind for part in parts} == {"subgraph"}
    assert {part.sample.provenance.parent_id for part in parts} == {"test/whole"}


def test_a_number_that_follows_from_shapes_is_a_literal() -> None:
    last = decompose(MIXED, cuts=[7]).parts[1]
    assert last.sample.ops[0].args == (Ref(0), 8, -1)
    assert all(each.role == "input" for each in last.sample.inputs)


def test_a_number_that_only_a_run_tells_crosses_as_a_scalar() -> None:
    whole = graph(
        Op("torch.Tensor.item", (Ref(1),)),
        Op("operator.add", (Ref(2), 1)),
        Op("torch.mul", (Ref(0), Ref(3))),
        inputs=(X, Input("input", Value("int64", ()), data=(4).to_bytes(8, "little"))),
    )
    second = decompose(whole, cuts=[2]).parts[1]
    assert [each.role for each in second.sample.inputs] == ["input", "scalar"]
    assert second.takes == (0, 3)


def test_a_weight_stays_a_weight_and_the_whole_stays_as_it_was() -> None:
    weight = Input("parameter", Value("float32", (6, 6)), "weight")
    whole = graph(
        Op("torch.relu", (Ref(0),)), Op("torch.matmul", (Ref(2), Ref(1))), inputs=(X, weight)
    )
    first, second = decompose(whole).parts
    assert [each.role for each in first.sample.inputs] == ["input"]
    assert second.sample.inputs == (Input("input", Value("float32", (4, 6))), weight)


def test_no_cut_inside_a_region() -> None:
    enter = Op("torch.amp.autocast_mode._enter_autocast", ("cpu", Named("dtype", "bfloat16"), True, None))  # noqa: E501 # fmt: skip
    whole = graph(
        Op("torch.relu", (Ref(0),)),
        enter,
        Op("torch.exp", (Ref(1),)),
        Op("torch.amp.autocast_mode._exit_autocast", (Ref(2),)),
        Op("torch.abs", (Ref(3),)),
    )
    assert find_cuts(whole) == (1, 4)


def test_no_more_parts_than_operators() -> None:
    assert len(decompose(graph(Op("torch.relu", (Ref(0),))), 5).parts) == 1


@pytest.mark.parametrize(
    ("sample", "options", "message"),
    [
        (MIXED, {"cuts": [4]}, "`test/whole` cannot be cut before operator 4. It can be cut before "
         "1, 2, 3, 5, 6, 7, 8."),
        (MIXED, {"num_parts": 0}, "`num_parts` is 0; it must be 1 or more."),
    ],
)  # fmt: skip
def test_uncuttable_graphs_are_refused(
    sample: Sample, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SampleError, match=f"^{re.escape(message)}$"):
        decompose(sample, **options)
