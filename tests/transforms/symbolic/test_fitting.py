"""Expressions that have given values at given points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.transforms.symbolic.fitting import Fitter

SIZES = [224, 293, 159, 388, 195]
POINTS = [
    *({"b": 2, "h": size, "w": 224} for size in SIZES),
    *({"b": 2, "h": 224, "w": size} for size in SIZES[1:]),
    *({"b": size, "h": 224, "w": 224} for size in (3, 4, 7)),
    {"b": 3, "h": 293, "w": 159},
    {"b": 5, "h": 159, "w": 388},
]


@pytest.mark.parametrize(
    "text",
    [
        "b",
        "3*h - 1",
        "h//16",
        "(h + 1)//2",
        "(h + 31)//32",
        "(h//16)*(w//16) + 1",
        "b*(h//4)*(w//4)",
        "12*b*h",
        "h*w",
        "h + w",
        "64*b + 1",
        "(2*h - 1)**2",
    ],
)
def test_expressions_of_graphs_are_found_by_their_values(text: str) -> None:
    fitter = Fitter(POINTS)
    found = fitter.fit(fitter.evaluate(text))
    assert isinstance(found, str)
    more = Fitter([*POINTS, {"b": 9, "h": 320, "w": 448}, {"b": 1, "h": 96, "w": 640}])
    assert more.evaluate(found) == more.evaluate(text)


@given(st.integers(1, 40), st.integers(0, 50), st.integers(1, 33), st.sampled_from(["b", "h", "w"]))
def test_fitted_expressions_have_the_values(
    factor: int, offset: int, divisor: int, name: str
) -> None:
    fitter = Fitter(POINTS)
    row = fitter.evaluate(f"{factor}*(({name} + {offset})//{divisor}) + {offset}")
    found = fitter.fit(row)
    assert found is None or fitter.evaluate(found) == row


def test_a_number_is_one_and_noise_is_nothing() -> None:
    fitter = Fitter(POINTS)
    assert fitter.fit(fitter.constant(7)) == 7
    noise = tuple(7 + at * at % 5 for at in range(len(POINTS)))
    assert fitter.fit(noise) is None
