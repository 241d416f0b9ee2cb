"""Checks for disturbed timings: preempted calls, busy machines and slowed baselines.

A failed check widens an interval or flags a result. It never changes the result itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .intervals import speedup_interval

Interval: TypeAlias = tuple[float | None, float | None]
"""The ends of an interval; an unknown end is None."""
MIN_CALM_PAIRS = 10
"""The number of undisturbed pairs required to ignore the disturbed ones; every measurement has at
least this many pairs in total."""
ALLOWED_SHIFT = 1.1
"""The ratio of baseline times between two processes that is still considered normal. Memory
placement differs from process to process."""
SIGNIFICANCE = 0.005
"""The significance level of `find_shift` in each direction; 1 % of undisturbed runs are flagged."""
MAX_OTHER_CPU_SHARE, MAX_STEAL_SHARE, MAX_PREEMPTED_SHARE = 0.1, 0.01, 0.2
"""Limits beyond which a machine counts as busy."""
STATED_PRECISION = 0.05
"""The largest relative half width of the 95 % interval at which a speedup counts as precise.
`compare` treats a difference of 5 % as real. Settings that stop at a wider interval use that
width instead."""


@dataclasses.dataclass(frozen=True, slots=True)
class PairedSpeedup:
    """The speedup of interleaved pairs and the ends of its 95 % interval, None if undefined.

    In `num_calm` of the `num_pairs` pairs no call was preempted. `is_uneven` is set if one arm was
    preempted more often than its share of the time explains.
    """

    speedup: float
    low: float | None
    high: float | None
    num_pairs: int
    num_calm: int
    is_uneven: bool


def paired_speedup(
    baseline_ms: Sequence[float],
    candidate_ms: Sequence[float],
    is_candidate_first: Sequence[bool] | None = None,
    baseline_preemptions: Sequence[int] | None = None,
    candidate_preemptions: Sequence[int] | None = None,
) -> PairedSpeedup:
    """Return the speedup over the pairs without preempted calls, if there are enough of them.

    Preemption is determined by the operating system's counters, never by duration. With fewer than
    `MIN_CALM_PAIRS` undisturbed pairs, all pairs count. If the arms were preempted unevenly, the
    interval is widened to include the interval of all pairs.

    >>> paired_speedup([2.0] * 12, [1.0] * 11 + [50.0], None, [0] * 12, [0] * 11 + [3]).num_calm
    11
    """
    count = len(baseline_ms)
    orders = [False] * count if is_candidate_first is None else list(is_candidate_first)
    of_baseline = np.asarray(baseline_preemptions or [0] * count) > 0
    of_candidate = np.asarray(candidate_preemptions or [0] * count) > 0
    calm = ~(of_baseline | of_candidate)
    num_calm = int(calm.sum())
    whole = speedup_interval(baseline_ms, candidate_ms, orders)
    is_uneven = _is_uneven(baseline_ms, candidate_ms, of_baseline, of_candidate)
    speedup, low, high = whole
    if MIN_CALM_PAIRS <= num_calm < count:
        chosen = np.flatnonzero(calm).tolist()
        speedup, low, high = speedup_interval(
            [baseline_ms[i] for i in chosen],
            [candidate_ms[i] for i in chosen],
            [orders[i] for i in chosen],
        )
        if is_uneven:
            low, high = cover((low, high), whole[1:])
    return PairedSpeedup(speedup, low, high, count, num_calm, is_uneven)


def cover(left: Interval, right: Interval) -> Interval:
    """Return the smallest interval that contains both intervals; an unknown end stays None.

    >>> cover((1.0, 1.2), (0.9, 1.1)), cover((1.0, None), (0.9, 1.1))
    ((0.9, 1.2), (0.9, None))
    """
    low = None if left[0] is None or right[0] is None else min(left[0], right[0])
    high = None if left[1] is None or right[1] is None else max(left[1], right[1])
    return low, high


def find_shift(one_ms: Sequence[float], other_ms: Sequence[float]) -> float:
    """Return the ratio by which two samples of times differ beyond `ALLOWED_SHIFT`, otherwise 1.0.

    The ratio is the median over the quantiles that differ; it is above 1 if `one_ms` is slower. The
    decision uses the two-sample Smirnov test once in each direction, after multiplying the faster
    sample by `ALLOWED_SHIFT`. The test compares the fractions of calls beyond every observed time.
    A single unusual call therefore decides nothing, but three slow calls in ten do.

    >>> slow = [1.0, 21.0, 21.1, 21.2] * 10
    >>> find_shift(slow, [1.0, 1.01, 1.02] * 10) > 15, find_shift([1.0] * 30, [1.05] * 30)
    (True, 1.0)
    >>> find_shift([1.0] * 30, [1.5] * 30)
    0.6666666666666666
    """
    log_one, log_other = np.sort(np.log(one_ms)), np.sort(np.log(other_ms))
    if not len(log_one) or not len(log_other):
        return 1.0
    allowed = math.log(ALLOWED_SHIFT)
    if _is_greater(log_one, log_other + allowed) or _is_greater(log_other, log_one + allowed):
        shares = np.linspace(0.05, 0.95, 19)
        gaps = np.quantile(log_one, shares) - np.quantile(log_other, shares)
        gaps = gaps[np.abs(gaps) > allowed]
        return float(np.exp(np.median(gaps))) if len(gaps) else 1.0
    return 1.0


def is_busy(machine: Any, preemptions: Sequence[int] = ()) -> bool:
    """Return whether other processes or virtual machines took processor time from the timed calls.

    `machine` has the keys of `usage.describe_machine`, or is empty if unknown.
    """
    num_preempted = sum(count > 0 for count in preemptions)
    if num_preempted > MAX_PREEMPTED_SHARE * len(preemptions):
        return True
    if not machine:
        return False
    return (
        machine["other_cpu_share"] > MAX_OTHER_CPU_SHARE or machine["steal_share"] > MAX_STEAL_SHARE
    )


def is_noisy(interval: Interval, precision: float = STATED_PRECISION, machine: Any = None) -> bool:
    """Return whether a speedup is less precise than stated, or was measured on a busy machine.

    `interval` is the 95 % interval of the speedup. An unknown end counts as noise. `precision` is a
    relative half width of at least `STATED_PRECISION`. Preempted calls alone do not count as noise:
    they are excluded from the interval, or widen it.

    >>> is_noisy((1.96, 2.04)), is_noisy((1.6, 2.5)), is_noisy((None, None))
    (False, True, True)
    """
    low, high = interval
    if low is None or high is None or low <= 0:
        return True
    half_width = math.sqrt(high / low) - 1
    return half_width > max(precision, STATED_PRECISION) or is_busy(machine)


def _is_greater(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether the sorted values of `one` are greater, by Smirnov's one-sided test."""
    count, count_other = len(left), len(right)
    places = np.concatenate([left, right])
    excess = (
        np.searchsorted(right, places, "right") / count_other
        - np.searchsorted(left, places, "right") / count
    )
    distance = float(excess.max())
    if distance >= 1:  # exact probability for fully separated samples
        return 1 / math.comb(count + count_other, count) <= SIGNIFICANCE
    chance = math.exp(-2 * distance**2 * count * count_other / (count + count_other))
    return chance <= SIGNIFICANCE


def _is_uneven(
    baseline_ms: Sequence[float],
    candidate_ms: Sequence[float],
    of_baseline: np.ndarray,
    of_candidate: np.ndarray,
) -> bool:
    """Return whether the arms' preemptions are not in proportion to their times.

    The probability of preemption grows with the duration of a call. Durations are taken from calls
    that were not preempted.
    """
    num_baseline, num_candidate = int(of_baseline.sum()), int(of_candidate.sum())
    total = num_baseline + num_candidate
    if total < 10 or min((~of_baseline).sum(), (~of_candidate).sum()) == 0:
        return False
    calm_ms = float(np.median(np.asarray(baseline_ms)[~of_baseline]))
    calm_candidate_ms = float(np.median(np.asarray(candidate_ms)[~of_candidate]))
    share = calm_ms / (calm_ms + calm_candidate_ms)
    deviation = math.sqrt(total * share * (1 - share))
    return abs(num_baseline - total * share) > 2.58 * deviation
