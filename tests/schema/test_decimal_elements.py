"""Stored elements that are decimal fractions: exact there and back, and refused where they lie."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import SampleError, SchemaError
from graphnet_datasets.sample import Input, Sample, Value
from graphnet_datasets.schema import sample_from_row, sample_to_row
from graphnet_datasets.schema.decimal_elements import pack_decimals, unpack_decimals
from graphnet_datasets.storage.table import read_table, write_table

# Most of them texts of six places, as GraphNet writes them; some what such text never is.
fractions = st.integers(-(2**30) + 1, 2**30 - 1).map(lambda number: float(f"{number / 1e6:.6f}"))
odd = st.sampled_from([-0.0, float("nan"), float("inf"), 1e-9, 3.4e38, 2000.0, 1 / 3])
tensors = st.lists(st.one_of(st.lists(fractions), st.lists(st.one_of(fractions, odd)))).map(
    lambda lists: [np.array(each, np.float32).tobytes() for each in lists]
)


def sample_of(*stored: tuple[str, bytes]) -> Sample:
    size = {"float32": 4, "int64": 8}
    inputs = [
        Input("buffer", Value(dtype, (len(data) // size[dtype],)), f"b{number}", data=data)
        for number, (dtype, data) in enumerate(stored)
    ]
    return Sample("example/stored", "torch", "other", tuple(inputs), (), None)


HALVES = np.array([0.5, -1.25, 0.000001], np.float32).tobytes()
THIRDS = np.array([1 / 3], np.float32).tobytes()
WHOLE = np.arange(3, dtype=np.int64).tobytes()
SAMPLE = sample_of(("float32", HALVES), ("int64", WHOLE), ("float32", THIRDS), ("float32", HALVES))


@given(data=tensors)
def test_packed_elements_are_unpacked_bit_by_bit(data: list[bytes]) -> None:
    column, packed = pack_decimals([("float32", each) for each in data])
    assert (column is None) == (not packed)
    found = {} if column is None else unpack_decimals(column)
    assert found == {number: data[number] for number in packed}


@given(numbers=st.lists(st.integers(-(2**30) + 1, 2**30 - 1), min_size=1))
def test_every_text_of_six_places_is_packed_unless_it_is_a_negative_zero(
    numbers: list[int],
) -> None:
    text = [f"{number / 1e6:.6f}" for number in numbers]
    # Beyond 16 two texts may be one float, which then comes of the nearer number; the bits count.
    data = np.array([float(each) + 0.0 for each in text], np.float32).tobytes()
    _, packed = pack_decimals([("float32", data)])
    assert packed == {0}


@pytest.mark.parametrize("odd_one", [-0.0, np.nan, np.inf, -np.inf, 1e-7, 1 / 3, 1e9])
def test_elements_with_more_places_are_not_packed(odd_one: float) -> None:
    data = np.array([0.5, odd_one], np.float32).tobytes()
    assert pack_decimals([("float32", data)]) == (None, set())


def test_a_sample_comes_back_from_its_row_and_from_a_file(tmp_path: Any) -> None:
    row = sample_to_row(SAMPLE)
    assert [each["data"] for each in row["inputs"]] == [None, WHOLE, THIRDS, None]
    assert row["decimal_elements"]["inputs"] == [0, 3]
    assert sample_from_row(row) == SAMPLE
    paths = [write_table([SAMPLE], tmp_path / name) for name in ("a.parquet", "b.parquet")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    (read,) = read_table(paths[0]).to_pylist()
    assert sample_from_row(read) == SAMPLE


def test_rows_from_before_there_was_the_column_are_read() -> None:
    row = sample_to_row(SAMPLE)
    del row["decimal_elements"]
    for each, stored in zip(row["inputs"], SAMPLE.inputs, strict=True):
        each["data"] = stored.data
    assert sample_from_row(row) == SAMPLE


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("inputs", [0, 0], "must have distinct inputs"),
        ("inputs", [0], "must have distinct inputs"),
        ("inputs", [0, 9], "refers to the input 9, which does not exist"),
        ("inputs", [0, 1], "contains elements of the input 1, which also has"),
        ("inputs", [0, 2], "contains elements of the input 2, which also has"),
        ("inputs", [0, -1], "`decimal_elements.inputs` is not a list of integers"),
        ("lengths", [3, True], "`decimal_elements.lengths` is not a list of integers"),
        ("lengths", [3, 2**62], "does not have"),
        ("lengths", [2, 4], "input"),
        ("places", 40, "`decimal_elements.places` is 40, not from 0 to 9"),
        ("places", None, "`decimal_elements.places` is None, not from 0 to 9"),
        ("byte_2", b"abc", "`decimal_elements.byte_2` does not have 6 bytes"),
        ("byte_3", None, "`decimal_elements.byte_3` does not have 6 bytes"),
    ],
)
def test_a_column_that_lies_is_refused(name: str, value: Any, message: str) -> None:
    row = copy.deepcopy(sample_to_row(SAMPLE))
    row["decimal_elements"][name] = value
    with pytest.raises((SchemaError, SampleError), match=message):
        sample_from_row(row)


def test_equal_samples_have_equal_rows() -> None:
    again = dataclasses.replace(SAMPLE, inputs=tuple(SAMPLE.inputs))
    assert sample_to_row(again) == sample_to_row(SAMPLE)
