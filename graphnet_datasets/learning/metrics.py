"""The metrics of the learning tasks, on plain sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MissingExtraError, ScoreError

Floats = npt.NDArray[np.float64]

NUM_PICKS = (1, 5)
"""Numbers of schedules with the highest scores of which the fastest is compared."""


def latency_error(predicted_ms: npt.ArrayLike, measured_ms: npt.ArrayLike) -> dict[str, float]:
    """Return the errors of predicted latencies, all in milliseconds.

    `mape` is the mean absolute error relative to the measured latency. `median_factor` is the
    median ratio of the larger to the smaller of the two, at least 1. `rank_correlation` is
    Spearman's, 0 if all predictions are equal.

    Raises:
        ScoreError: The lengths differ, there are fewer than two values, or a value is not positive.
        MissingExtraError: scikit-learn is not installed.

    >>> error = latency_error([1.0, 4.0, 9.0], [2.0, 4.0, 6.0])
    >>> round(error["median_factor"], 3), round(error["mape"], 3), error["rank_correlation"]
    (1.5, 0.333, 1.0)
    """
    predicted, measured = _arrays(predicted_ms, measured_ms)
    if min(predicted.min(), measured.min()) <= 0:
        raise ScoreError("A latency is not positive. Pass latencies in milliseconds.")
    return {
        "mape": float(np.mean(np.abs(predicted - measured) / measured)),
        "median_factor": float(np.median(np.exp(np.abs(np.log(predicted) - np.log(measured))))),
        "rank_correlation": rank_correlation(predicted, measured),
    }


def outcome_accuracy(probabilities: npt.ArrayLike, outcomes: npt.ArrayLike) -> dict[str, float]:
    """Return the accuracy of predicted probabilities that an outcome is true.

    A probability above 0.5 predicts true. `balanced_accuracy` is the mean of the accuracies on true
    and on false outcomes, `majority_accuracy` the accuracy of always predicting the more frequent
    outcome, and `auc` the area under the receiver operating characteristic.

    Raises:
        ScoreError: The lengths differ, or all outcomes are equal.
        MissingExtraError: scikit-learn is not installed.

    >>> outcome_accuracy([0.9, 0.2, 0.6, 0.7], [True, False, False, True])
    {'accuracy': 0.75, 'balanced_accuracy': 0.75, 'majority_accuracy': 0.5, 'auc': 1.0}
    """
    predicted, expected = _arrays(probabilities, outcomes)
    is_true = expected > 0.5
    share = float(is_true.mean())
    if share in (0.0, 1.0):
        raise ScoreError(
            "All outcomes are equal, so that no accuracy is informative. Pass both kinds."
        )
    _, metrics = _import_libraries()
    is_predicted = predicted > 0.5
    return {
        "accuracy": float((is_predicted == is_true).mean()),
        "balanced_accuracy": float(metrics.balanced_accuracy_score(is_true, is_predicted)),
        "majority_accuracy": max(share, 1 - share),
        "auc": float(metrics.roc_auc_score(is_true, predicted)),
    }


def schedule_ranking(
    scores: npt.ArrayLike, times_ms: npt.ArrayLike, task_ids: Sequence[str]
) -> dict[str, float]:
    """Return how well scores rank the schedules of each task; higher scores promise less time.

    `rank_correlation` is Spearman's between scores and speeds, the mean over tasks. `best_of_1` and
    `best_of_5` are the speed of the fastest among that many schedules with the highest scores,
    relative to the fastest of the task, also the mean over tasks. Tasks with fewer than two
    schedules are left out.

    Raises:
        ScoreError: The lengths differ, a time is not positive, or no task has two schedules.
        MissingExtraError: scikit-learn is not installed.

    >>> schedule_ranking([3, 2, 1], [1.0, 2.0, 4.0], ["matmul"] * 3)
    {'rank_correlation': 1.0, 'best_of_1': 1.0, 'best_of_5': 1.0, 'num_tasks': 1}
    """
    predicted, times = _arrays(scores, times_ms)
    if len(task_ids) != len(predicted):
        raise ScoreError(
            f"There are {len(predicted)} scores and {len(task_ids)} task ids. Pass one per score."
        )
    if times.min() <= 0:
        raise ScoreError("A time is not positive. Pass the times in milliseconds.")
    names = np.asarray(task_ids)
    correlations: list[float] = []
    shares: dict[int, list[float]] = {count: [] for count in NUM_PICKS}
    for name in sorted(set(task_ids)):
        chosen = names == name
        if chosen.sum() < 2:
            continue
        of_task, speeds = predicted[chosen], times[chosen].min() / times[chosen]
        correlations.append(rank_correlation(of_task, speeds))
        order = np.argsort(-of_task, kind="stable")
        for count, values in shares.items():
            values.append(float(speeds[order[:count]].max()))
    if not correlations:
        raise ScoreError("No task has two schedules. Pass the schedules of at least one task.")
    return {
        "rank_correlation": float(np.mean(correlations)),
        **{f"best_of_{count}": float(np.mean(values)) for count, values in shares.items()},
        "num_tasks": len(correlations),
    }


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation, or 0 if all values of one side are equal.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    statistics, _ = _import_libraries()
    return float(statistics.spearmanr(first, second).statistic)


def _import_libraries() -> tuple[Any, Any]:
    """Return the modules with the statistics of scipy and the metrics of scikit-learn."""
    try:
        import scipy.stats
        import sklearn.metrics
    except ImportError as error:
        purpose = "The metrics of learning tasks"
        raise MissingExtraError("scikit-learn", "learning", purpose) from error
    return scipy.stats, sklearn.metrics


def _arrays(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    arrays = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if arrays[0].shape != arrays[1].shape or arrays[0].ndim != 1 or len(arrays[0]) < 2:
        raise ScoreError(
            f"The predictions have shape {arrays[0].shape} and the references "
            f"{arrays[1].shape}. Pass two sequences of the same length, at least 2."
        )
    if not all(np.isfinite(values).all() for values in arrays):
        raise ScoreError("A prediction or reference is not finite. Replace or omit it.")
    return arrays
