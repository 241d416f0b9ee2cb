"""Offsets among the inputs: found by what consumes them, drawn so that they never go down."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphnet_datasets.frameworks.torch.materialize import materialize
from graphnet_datasets.frameworks.torch.tensors import make_inputs
from graphnet_datasets.inputs import Mode, make_array
from graphnet_datasets.inputs.offsets import find_offsets
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref, SliceArg

AFTER, BEFORE = SliceArg(1, None, None), SliceArg(None, -1, None)
SPLITS = Input(
    "input", Value("int64", (900,)), "splits", statistics=Statistics(2000.0, 1100.0, 0.0, 4000.0)
)

COUNTS: dict[str, list[Op]] = {
    "slices": [
        Op("operator.getitem", (Ref(0), AFTER)),
        Op("operator.getitem", (Ref(0), (BEFORE,))),
        Op("operator.sub", (Ref(1), Ref(2))),
    ],
    "aten slices after a cast": [
        Op("torch.Tensor.long", (Ref(0),)),
        Op("torch.ops.aten.slice.Tensor", (Ref(1), 0, 1, 9223372036854775807)),
        Op("torch.ops.aten.slice.Tensor", (Ref(1), 0, 0, -1)),
        Op("torch.ops.aten.sub.Tensor", (Ref(2), Ref(3))),
    ],
    "differences": [Op("torch.diff", (Ref(0),))],
    "an operator that takes them": [Op("torch.searchsorted", (Ref(0), Ref(0)))],
}


def sample_of(ops: list[Op], *inputs: Input) -> Sample:
    return Sample("example/offsets", "torch", "other", inputs or (SPLITS,), tuple(ops), Ref(0))


@pytest.mark.parametrize("name", COUNTS)
def test_offsets_are_found_and_drawn_in_order(name: str) -> None:
    sample = sample_of(COUNTS[name])
    assert find_offsets(sample) == {0}
    for seed in range(20):
        elements = make_array(sample, 0, seed)
        assert (np.diff(elements) >= 0).all()
        assert (elements[0], elements[-1]) == (0, 4000)
    assert (make_array(sample, 0, 1) != make_array(sample, 0, 2)).any()


@pytest.mark.parametrize(
    "ops",
    [
        [Op("operator.getitem", (Ref(0), AFTER)), Op("operator.sub", (Ref(1), Ref(1)))],
        [
            Op("operator.getitem", (Ref(0), BEFORE)),
            Op("operator.getitem", (Ref(0), AFTER)),
            Op("operator.sub", (Ref(1), Ref(2))),
        ],
        [
            Op("operator.getitem", (Ref(0), SliceArg(2, None, None))),
            Op("operator.getitem", (Ref(0), SliceArg(None, -2, None))),
            Op("operator.sub", (Ref(1), Ref(2))),
        ],
        [Op("operator.add", (Ref(0), 1))],
    ],
)
def test_other_vectors_stay_as_they_are_drawn(ops: list[Op]) -> None:
    sample = sample_of(ops)
    assert find_offsets(sample) == frozenset()
    assert (np.diff(make_array(sample, 0)) < 0).any()


@pytest.mark.parametrize("mode", ["replay", "fresh", "probe"])
def test_bags_begin_where_they_may(mode: Mode) -> None:
    stored = np.array([0, 3, 9, 12, 12, 17], "<i8")
    bag = Op("torch.nn.functional.embedding_bag", (Ref(0), Ref(1), Ref(2)))
    sample = sample_of(
        [bag],
        Input("input", Value("int64", (20,)), "ids"),
        Input("parameter", Value("float32", (100, 8)), "table"),
        Input("input", Value("int64", (6,)), "offsets", data=stored.tobytes()),
    )
    module = materialize(sample, allow_unchecked_operators=True)
    for seed in range(20):
        inputs = make_inputs(sample, seed, mode=mode)
        module(**inputs)
        offsets = inputs[sample.input_names[2]]
        assert isinstance(offsets, torch.Tensor)
        assert (offsets[0], offsets[-1]) == (0, 17)
