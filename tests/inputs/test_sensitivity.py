"""The figures of inputs, from definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphnet_datasets import Sample
from graphnet_datasets.inputs.sensitivity import SignalFigures, changes_of, relative_change
from graphnet_datasets.sample import Input, Value

SAMPLE = Sample("a/b", "torch", "cv", (Input("input", Value("float32", (2,))),), (), ())
CLOSED = Sample("a/b", "torch", "cv", (Input("parameter", Value("float32", (2,))),), (), ())


def test_equal_outputs_do_not_change_and_independent_ones_change_by_the_root_of_two() -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 100_000))
    assert relative_change(first, first) == 0
    assert relative_change(first, second) == pytest.approx(math.sqrt(2), rel=0.02)
    assert relative_change(first, -first) == pytest.approx(2)
    assert relative_change(first, 2 * first) == pytest.approx(1 / math.sqrt(2.5))


def test_a_constant_hides_the_variation_on_top_of_it() -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 1000))
    change = relative_change(first + 100, second + 100)
    assert change is not None
    assert change < 0.02


def test_elements_that_are_not_finite_do_not_count() -> None:
    first, second = np.array([1.0, np.inf, 2.0]), np.array([1.0, np.inf, np.nan])
    assert relative_change(first, second) == 0
    assert relative_change(np.array([np.nan]), np.array([1.0])) is None
    assert relative_change(np.zeros(3), np.zeros(3)) == 0
    assert relative_change(np.zeros(3), np.zeros(4)) == 1
    assert changes_of([None, np.ones(2, np.float32)], [None, np.ones(2, np.float32)]) == [0]


@pytest.mark.parametrize(
    ("sample", "changes", "entropies", "outcome"),
    [
        (SAMPLE, [0.4], [], "reached"),
        (SAMPLE, [0.4], [0.5, 0.9, 0.7], "reached"),
        (SAMPLE, [0.1, 0.2, 0.9], [0.95], "insensitive outputs, uniform attention"),
        (SAMPLE, [0.5], [0.1], "one-hot attention"),
        (SAMPLE, [], [], "integer outputs"),
        (CLOSED, [0.0], [], "no data inputs"),
    ],
)
def test_the_outcome_names_the_targets_that_are_missed(
    sample: Sample, changes: list[float], entropies: list[float], outcome: str
) -> None:
    assert SignalFigures.of(sample, changes, entropies).outcome == outcome


def test_figures_are_columns() -> None:
    assert SignalFigures(0.123456, None, "reached").columns() == {
        "input_sensitivity": 0.123,
        "attention_entropy": None,
        "signal_outcome": "reached",
    }
