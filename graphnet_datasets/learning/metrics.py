"""The metrics of the learning tasks, on plain sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ScoreError

Floats = npt.NDArray[np.float64]

SEVERAL = (1, 5)
"""Numbers of schedules that are measured after a ranking."""


def latency_error(predicted_ms: Sequence[float], measured_ms: Sequence[float]) -> dict[str, float]:
    """Return the errors of predicted latencies, all in milliseconds.

    `mape` is the mean absolute error relative to the measured latency. `median_factor` is the
    median of the larger of the two over the smaller, at least 1. `rank_correlation` is Spearman's,
    0 if all predictions are equal.

    Raises:
        ScoreError: The lengths differ, there are fewer than two values, or a value is not positive.

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


def outcome_accuracy(probabilities: Sequence[float], outcomes: Sequence[bool]) -> dict[str, float]:
    """Return the accuracy of predicted probabilities that an outcome is true.

    A probability above 0.5 predicts true. `balanced_accuracy` is the mean of the accuracies on true
    and on false outcomes, `majority_accuracy` the accuracy of always predicting the more frequent
    outcome, and `auc` the area under the receiver operating characteristic.

    Raises:
        ScoreError: The lengths differ, or all outcomes are equal.

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
    is_right = (predicted > 0.5) == is_true
    ranks = average_ranks(predicted)
    num_true, num_false = int(is_true.sum()), int((~is_true).sum())
    excess = ranks[is_true].sum() - num_true * (num_true + 1) / 2  # Mann and Whitney's U
    return {
        "accuracy": float(is_right.mean()),
        "balanced_accuracy": float((is_right[is_true].mean() + is_right[~is_true].mean()) / 2),
        "majority_accuracy": max(share, 1 - share),
        "auc": float(excess / (num_true * num_false)),
    }


def schedule_ranking(
    scores: Sequence[float], times_ms: Sequence[float], task_ids: Sequence[str]
) -> dict[str, float]:
    """Return how well scores rank the schedules of each task; higher scores promise less time.

    `rank_correlation` is Spearman's between scores and speeds, the mean over tasks. `best_of_1` and
    `best_of_5` are the speed of the fastest among that many schedules with the highest scores,
    relative to the fastest of the task, also the mean over tasks. Tasks with fewer than two
    schedules are left out.

    Raises:
        ScoreError: The lengths differ, a time is not positive, or no task has two schedules.

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
    shares: Mapping[int, list[float]] = {count: [] for count in SEVERAL}
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


def average_ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of their ranks.

    >>> average_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse].astype(np.float64)


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation, or 0 if all values of one side are equal."""
    ranks = [average_ranks(values) for values in (first, second)]
    deviations = [values - values.mean() for values in ranks]
    scale = float(np.sqrt((deviations[0] ** 2).sum() * (deviations[1] ** 2).sum()))
    return float((deviations[0] * deviations[1]).sum()) / scale if scale else 0.0


def _arrays(first: Sequence[Any], second: Sequence[Any]) -> tuple[Floats, Floats]:
    arrays = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if arrays[0].shape != arrays[1].shape or arrays[0].ndim != 1 or len(arrays[0]) < 2:
        raise ScoreError(
            f"The predictions have shape {arrays[0].shape} and the references "
            f"{arrays[1].shape}. Pass two sequences of the same length, at least 2."
        )
    if not all(np.isfinite(values).all() for values in arrays):
        raise ScoreError("A prediction or reference is not finite. Replace or omit it.")
    return arrays
