"""Evaluation of replayed runs: trials to the pool's best, and total latency over seconds.

The incumbent of a task is the candidate that a user would deploy: the one with the shortest shown
time so far. Its score uses only the repetitions that were hidden from the tuner (`Pool.score_ms`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .measurement import Measurement
from .replay import Pool
from .task import Task


def incumbent_scores(pool: Pool, rows: Sequence[Measurement]) -> np.ndarray:
    """Return the incumbent's score in ms after each row of one task, float64 [n].

    The score is infinite before the first success. It may rise, since the candidate with the
    shortest shown time need not have the best score.
    """
    scores, shown, score = [], math.inf, math.inf
    for row in rows:
        if row.latency_ms < shown:
            shown, score = row.latency_ms, pool.score_ms(row.task_id, row.trace_hash)
        scores.append(score)
    return np.array(scores)


def trials_to(
    pool: Pool, task: Task, rows: Sequence[Measurement], *, share: float = 0.95, cap: int
) -> int:
    """Return the number of trials until the task's incumbent reaches `share` of the best.

    Returns `cap + 1` if it does not within `cap` trials.
    """
    own = [row for row in rows if row.task_id == task.task_id][:cap]
    reached = incumbent_scores(pool, own) <= pool.best_score_ms(task) / share
    return int(np.argmax(reached)) + 1 if reached.any() else cap + 1


def total_curve(pool: Pool, rows: Sequence[Measurement]) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and the weighted sum of all tasks' scores after each row, both [n + 1].

    A task without an incumbent counts as the median of its candidates. Seconds are sums of the
    recorded `trial_s` and `tuner_s`.
    """
    latency = {key: pool.median_score_ms(task) for key, task in pool.tasks.items()}
    shown = dict.fromkeys(pool.tasks, math.inf)
    seconds, totals = [0.0], [_total(pool, latency)]
    for row in rows:
        if row.latency_ms < shown[row.task_id]:
            shown[row.task_id] = row.latency_ms
            latency[row.task_id] = pool.score_ms(row.task_id, row.trace_hash)
        seconds.append(seconds[-1] + (row.trial_s or 0.0) + (row.tuner_s or 0.0))
        totals.append(_total(pool, latency))
    return np.array(seconds), np.array(totals)


def best_total(pool: Pool) -> float:
    """Return the weighted sum of the best scores of all tasks."""
    return sum(task.weight * pool.best_score_ms(task) for task in pool.tasks.values())


def _total(pool: Pool, latency: Mapping[str, float]) -> float:
    return sum(task.weight * latency[key] for key, task in pool.tasks.items())


def area(seconds: np.ndarray, totals: np.ndarray, until: float, floor: float = 0.0) -> float:
    """Return the area between a step curve and `floor` from 0 to `until` seconds.

    >>> area(np.array([0.0, 1.0, 3.0]), np.array([5.0, 3.0, 2.0]), until=4.0, floor=1.0)
    9.0
    """
    inside = seconds < until
    edges = np.append(seconds[inside], until)
    return float(np.diff(edges) @ (totals[inside] - floor))


def bootstrap(
    values: np.ndarray,
    statistic: Callable[[np.ndarray], float] = np.mean,  # type: ignore[assignment]
    *,
    seed: int = 0,
    draws: int = 2000,
) -> tuple[float, float, float]:
    """Return a statistic over the rows of `values` and its 95 % bootstrap interval.

    Rows must be independent, such as tasks with their seeds as columns.

    >>> bootstrap(np.ones((4, 2)))
    (1.0, 1.0, 1.0)
    """
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(values), (draws, len(values)))
    resampled = np.array([statistic(values[indices]) for indices in drawn])
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(statistic(values)), float(low), float(high)
