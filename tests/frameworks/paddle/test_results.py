"""What operators give, without running them, and where a sample is cut by it."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.frameworks import find_results
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from graphnet_datasets.transforms import decompose
from graphnet_datasets.transforms.decompose import find_cuts

from .installed import paddle

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."
X = Input("input", Value("float32", ("s0", 6)))


def graph(*ops: Op, outputs: Any = None) -> Sample:
    outputs = (Ref(len(ops)),) if outputs is None else outputs
    return Sample("test/whole", "paddle", "other", (X,), ops, outputs, symbols=(Symbol("s0", 4),))


MIXED = graph(
    Op(f"{CORE}split_with_num", (Ref(0), 2, 1)),
    Op("operator.getitem", (Ref(1), 0)),
    Op(f"{CORE}tanh_", (Ref(2),)),
    Op(f"{CORE}nonzero", (Ref(2),)),
    Op(f"{CORE}cast", (Ref(4), Named("dtype", "float32"))),
    Op(f"{CORE}sum", (Ref(5), ListArg((0,)), None, False)),
    Op(
        f"{CORE}uniform",
        (ListArg((2,)), Named("dtype", "float32"), 0.0, 1.0, 0, Named("place", "expected")),
    ),
    Op("operator.add", (Ref(6), Ref(7))),
    outputs=(Ref(8), Ref(2), Ref(0)),
)
"""A list, a write through another name, a size that only a run tells, random numbers."""


def test_kinds_and_shapes_at_the_sizes_of_the_capture() -> None:
    results = find_results(MIXED)
    assert [each.kind for each in results] == ["other", *["tensor"] * 2, *["other"] * 2, *["tensor"] * 3]  # noqa: E501 # fmt: skip
    assert results[1].value == Value("float32", (4, 3))
    assert results[5].value == Value("float32", (2,))


def test_a_recorded_size_stands_where_paddle_infers_none() -> None:
    recorded = (Value("int64", ("2*s0", 2)),)
    (result,) = find_results(graph(Op(f"{CORE}nonzero", (Ref(0),), results=recorded)))
    assert result.value == Value("int64", (8, 2))


@pytest.mark.parametrize("cuts", [[cut] for cut in (2, 3, 6, 7)] + [[2, 3, 6, 7]])
def test_parts_give_the_bits_of_the_whole(cuts: list[int]) -> None:
    assert find_cuts(MIXED) == (2, 3, 6, 7)
    paddle.seed(0)
    whole = materialize(MIXED)(**make_inputs(MIXED))
    values = dict(enumerate(make_inputs(MIXED).values()))
    paddle.seed(0)
    for part in decompose(MIXED, cuts=cuts).parts:
        results = materialize(part.sample)(*map(values.__getitem__, part.takes))
        values.update(zip(part.gives, results, strict=True))
    for ref, theirs in zip(MIXED.outputs, whole, strict=True):  # type: ignore[arg-type]
        assert values[ref.index].numpy().tobytes() == theirs.numpy().tobytes()  # type: ignore[union-attr]
