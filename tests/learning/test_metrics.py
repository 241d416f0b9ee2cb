"""Metrics of learning tasks, beside scikit-learn and scipy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.learning import latency_error, outcome_accuracy, schedule_ranking
from graphnet_datasets.learning.metrics import rank_correlation

SKLEARN = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
STATS = pytest.importorskip("scipy.stats", reason="scipy is not installed")


@pytest.mark.parametrize("seed", range(5))
def test_correlation_and_auc_equal_those_of_scipy_and_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6, (2, 40)).astype(float)  # many ties
    assert rank_correlation(first, second) == pytest.approx(
        STATS.spearmanr(first, second).statistic
    )
    outcomes, probabilities = rng.random(40) > 0.3, first / 6
    accuracy = outcome_accuracy(list(probabilities), list(outcomes))
    assert accuracy["auc"] == pytest.approx(SKLEARN.roc_auc_score(outcomes, probabilities))
    assert accuracy["balanced_accuracy"] == pytest.approx(
        SKLEARN.balanced_accuracy_score(outcomes, probabilities > 0.5)
    )


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
        "rank_correlation": 0.0,
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
