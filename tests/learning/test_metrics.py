"""Metrics of learning tasks, beside their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.learning import latency_error, outcome_accuracy, schedule_ranking
from graphnet_datasets.learning.metrics import rank_correlation

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Return ranks in which equal values share their mean rank."""
    return np.array([(values < x).sum() + ((values == x).sum() + 1) / 2 for x in values])


@pytest.mark.parametrize("seed", range(5))
def test_correlation_and_accuracy_follow_their_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6, (2, 40)).astype(float)  # many ties
    expected = np.corrcoef(ranks_of(first), ranks_of(second))[0, 1]
    assert rank_correlation(first, second) == pytest.approx(expected)
    outcomes, probabilities = rng.random(40) > 0.3, first / 6
    accuracy = outcome_accuracy(probabilities, outcomes)
    differences = probabilities[outcomes][:, None] - probabilities[~outcomes]
    assert accuracy["auc"] == pytest.approx((np.sign(differences) / 2 + 0.5).mean())
    is_right = (probabilities > 0.5) == outcomes
    assert accuracy["accuracy"] == is_right.mean()
    shares = is_right[outcomes].mean(), is_right[~outcomes].mean()
    assert accuracy["balanced_accuracy"] == pytest.approx(np.mean(shares))


def test_errors_of_latencies_are_relative() -> None:
    error = latency_error([1.0, 4.0, 30.0], [2.0, 4.0, 10.0])
    assert error["mape"] == pytest.approx((0.5 + 0 + 2) / 3)
    assert error["median_factor"] == pytest.approx(2.0)


def test_rankings_are_within_tasks() -> None:
    # The scores of the two tasks are on different scales, and one schedule alone is no ranking.
    ranking = schedule_ranking(
        [9.0, 8.0, 0.1, 0.2, 5.0], [1.0, 2.0, 10.0, 40.0, 3.0], ["a", "a", "b", "b", "c"]
    )
    assert ranking == {
        "rank_correlation": pytest.approx(0.0),
        "best_of_1": pytest.approx((1 + 0.25) / 2),
        "best_of_5": 1.0,
        "num_tasks": 2,
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: latency_error([1.0], [1.0]), "at least 2"),
        (lambda: latency_error([1.0, 2.0], [1.0]), "the same length"),
        (lambda: latency_error([1.0, 0.0], [1.0, 1.0]), "not positive"),
        (lambda: latency_error([1.0, math.nan], [1.0, 1.0]), "not finite"),
        (lambda: outcome_accuracy([0.1, 0.2], [True, True]), "All outcomes are equal"),
        (lambda: schedule_ranking([1, 2], [1.0, 2.0], ["a", "b"]), "No task has two"),
        (lambda: schedule_ranking([1, 2], [1.0, 2.0], ["a"]), "1 task ids"),
        (lambda: schedule_ranking([1, 2], [1.0, -2.0], ["a", "a"]), "not positive"),
    ],
)
def test_unsuitable_values_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        call()
