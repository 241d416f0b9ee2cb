"""Moments of chunks are those of the whole, whichever way it is cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.frameworks.moments import Moments, is_structured, round_significant

numbers = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60)


def add(moments: Moments, chunk: np.ndarray) -> None:
    mean = float(chunk.mean())
    squares = float(np.square(chunk - mean).sum())
    low, high = float(chunk.min()), float(chunk.max())
    moments.add(chunk.size, mean=mean, squares=squares, low=low, high=high)


@given(numbers, st.data())
def test_chunks_add_up_to_the_whole(elements: list[float], data: st.DataObject) -> None:
    whole = np.array(elements)
    places = st.lists(st.integers(1, whole.size), max_size=4)
    moments = Moments()
    for chunk in np.split(whole, sorted(set(data.draw(places)) - {whole.size})):
        add(moments, chunk)
    found = moments.statistics(limit=None)
    assert found is not None
    assert (found.min, found.max) == (whole.min(), whole.max())
    tolerance = 1e-3 * (abs(whole).max() + 1e-30)
    assert found.mean == pytest.approx(whole.mean(), rel=1e-3, abs=tolerance)
    assert found.std == pytest.approx(whole.std(), rel=1e-3, abs=tolerance)


def test_no_element_has_no_figures() -> None:
    assert Moments().statistics(limit=None) is None


def test_rounding_does_not_leave_the_dtype() -> None:
    moments = Moments()
    add(moments, np.array([-99999.0, 99999.0]))
    bounds = {99999.0: 99999.0, 200000.0: 100000.0, None: 99999.0}
    for limit, high in bounds.items():
        found = moments.statistics(limit)
        assert found is not None
        assert (found.min, found.max) == (-high, high)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_keeps_four_digits_and_is_its_own_answer(value: float) -> None:
    rounded = round_significant(value)
    assert math.isfinite(rounded)
    assert round_significant(rounded) == rounded
    assert rounded == pytest.approx(value, rel=5e-4, abs=1e-320)


def test_one_way_to_write_elements_is_enough_to_see_structure() -> None:
    noise = np.random.default_rng(0).bytes(4000)
    assert not is_structured([noise])
    assert is_structured([noise, np.ones(1000).tobytes()])
