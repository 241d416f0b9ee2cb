"""Stored elements that inputs share: held once, given back exactly, refused if false."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import SchemaError
from graphnet_datasets.sample import Input, Sample, Value
from graphnet_datasets.schema import sample_from_row, sample_to_row
from graphnet_datasets.schema.repeated_elements import MIN_BYTES, with_repeats
from graphnet_datasets.storage.table import read_table, write_table


def sample_of(*stored: bytes | None) -> Sample:
    inputs = [
        Input("buffer", Value("int64", (0 if data is None else len(data) // 8,)), "", data=data)
        for data in stored
    ]
    return Sample("example/shared", "torch", "other", tuple(inputs), (), None)


LARGE = np.arange(MIN_BYTES // 8, dtype=np.int64).tobytes()
LARGER = np.arange(MIN_BYTES, dtype=np.int64).tobytes()
SMALL = bytes(8)
SAMPLE = sample_of(LARGE, SMALL, LARGER, LARGE, SMALL, LARGE, None)


@given(st.lists(st.sampled_from([LARGE, LARGER, SMALL, None])))
def test_large_repeated_elements_are_stored_once(stored: list[bytes | None]) -> None:
    sample = sample_of(*stored)
    row = sample_to_row(sample)
    held = [each["data"] for each in row["inputs"] if each["data"] not in (None, SMALL)]
    assert len(held) == len(set(held)) == len({LARGE, LARGER} & set(stored))
    assert sample_from_row(row) == sample
    assert with_repeats(row) == row


def test_they_come_back_from_a_file(tmp_path: Path) -> None:
    path = write_table([SAMPLE], tmp_path / "a.parquet")
    (row,) = read_table(path).to_pylist()
    assert row["repeated_elements"] == [{"input": 3, "first": 0}, {"input": 5, "first": 0}]
    found = sample_from_row(row)
    assert found == SAMPLE
    assert found.inputs[3].data is found.inputs[0].data


def test_rows_from_before_there_was_the_column_are_read_and_brought_up_to_date() -> None:
    row = sample_to_row(SAMPLE)
    old = {name: value for name, value in row.items() if name != "repeated_elements"}
    pairs = zip(row["inputs"], SAMPLE.inputs, strict=True)
    old["inputs"] = [{**each, "data": stored.data} for each, stored in pairs]
    assert sample_from_row(old) == SAMPLE
    assert with_repeats(old) == row


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([{"input": 3, "first": 3}], "the second must precede the first and both must be below 7"),
        ([{"input": 9, "first": 0}], "the second must precede the first and both must be below 7"),
        ([{"input": 3, "first": -1}], "the second must precede the first and both must be below 7"),
        ([{"input": 5, "first": 3}], "refers to the input 3, which has no stored elements"),
        ([{"input": 2, "first": 0}], "refers to the input 2, which has its own elements"),
        ([{"input": 3, "first": 0}] * 2, "refers to the input 3, which has its own elements"),
        ([{"input": True, "first": 0}], "is not a pair of inputs"),
        ([{"input": 3}], "is not a pair of inputs"),
        (["x"], "is not a pair of inputs"),
        ("x", "`repeated_elements` is of type `str`"),
    ],
)
def test_a_column_that_lies_is_refused(column: Any, message: str) -> None:
    row = copy.deepcopy(sample_to_row(SAMPLE))
    row["repeated_elements"] = column
    with pytest.raises(SchemaError, match=message):
        sample_from_row(row)
