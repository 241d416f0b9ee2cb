"""Recorded elements that index out of range are named."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet_datasets.inputs import misfits
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

TABLE = Input("parameter", Value("float32", (8, 4)), "table")
LOOKUP = Op("torch.nn.functional.embedding", (Ref(0), Ref(1)))


def sample_with(ids: Input, *ops: Op) -> Sample:
    return Sample("misfits/sample", "torch", "nlp", (ids, TABLE), ops, Ref(1 + len(ops)))


def stored(*elements: int) -> Input:
    data = np.array(elements, "<i8").tobytes()
    return Input("input", Value("int64", (len(elements),)), "ids", data=data)


@pytest.mark.parametrize(("last", "count"), [(7, 0), (8, 1), (51289, 1)])
def test_a_token_has_to_have_a_row(last: int, count: int) -> None:
    assert len(misfits(sample_with(stored(0, last), LOOKUP))) == count


def test_a_measured_range_counts_as_stored_elements_do() -> None:
    held = Statistics(5.0, 2.0, 0.0, 9.0)
    ids = Input("input", Value("int64", (2,)), "ids", statistics=held)
    assert misfits(sample_with(ids, LOOKUP)) == [
        "The elements of the input `ids` are in [0, 9], but it is an index in [0, 7]."
    ]


def test_shifted_indices_fit() -> None:
    shift = Op("operator.sub", (Ref(0), 100))
    lookup = Op("torch.nn.functional.embedding", (Ref(2), Ref(1)))
    assert misfits(sample_with(stored(100, 107), shift, lookup)) == []
    assert len(misfits(sample_with(stored(99, 107), shift, lookup))) == 1


def test_integers_that_are_no_indices_are_unrestricted() -> None:
    assert misfits(sample_with(stored(0, 10**9), Op("torch.neg", (Ref(0),)))) == []
