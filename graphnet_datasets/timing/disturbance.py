"""Doubts about times: whether the pairs were calm, and the baseline what it is without candidate.

A doubt widens or flags a figure, it never makes another figure of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .intervals import speedup_interval

Interval: TypeAlias = tuple[float | None, float | None]
"""The ends of an interval; None is one that is not known."""
MIN_CALM_PAIRS = 10
"""Calm pairs from which on the others are left out; as many as any measurement has."""
ALLOWED_SHIFT = 1.1
"""Ratio of the baseline's times in two processes that proves nothing: where memory came to lie
differs from process to process."""
SIGNIFICANCE = 0.005
"""Of each direction of `find_shift`: one honest run in a hundred is doubted."""
MAX_OTHER_CPU_SHARE, MAX_STEAL_SHARE, MAX_PREEMPTED_SHARE = 0.1, 0.01, 0.2
"""Beyond any of these a machine is busy."""
STATED_PRECISION = 0.05
"""Relative half width of the 95 % interval up to which a speedup counts as known: `compare` takes a
difference of 5 % for one. Settings that stop at a wider interval state that one."""


@dataclasses.dataclass(frozen=True, slots=True)
class PairedSpeedup:
    """The speedup of interleaved pairs and its 95 % interval, None where there is none.

    `num_calm` pairs of `num_pairs` had no call that was preempted. `is_uneven` says that one arm
    was preempted more often than its share of the time explains.
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
    """Return the speedup of the pairs of which no call was preempted, where there are enough.

    A call counts as preempted by the record of the operating system, never by its time. With fewer
    than `MIN_CALM_PAIRS` others all pairs count. Where the arms were preempted unevenly, the
    interval covers that of all pairs as well.

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


def cover(one: Interval, other: Interval) -> Interval:
    """Return the ends of the interval that covers two; None is an end that is not known.

    >>> cover((1.0, 1.2), (0.9, 1.1)), cover((1.0, None), (0.9, 1.1))
    ((0.9, 1.2), (0.9, None))
    """
    low = None if one[0] is None or other[0] is None else min(one[0], other[0])
    high = None if one[1] is None or other[1] is None else max(one[1], other[1])
    return low, high


def find_shift(one_ms: Sequence[float], other_ms: Sequence[float]) -> float:
    """Return by how much the times differ beyond `ALLOWED_SHIFT`, as a ratio; 1.0 if they need not.

    The ratio is of the medians of the quantiles that differ: above 1 where `one_ms` are greater.
    It is Smirnov's test of two samples, once in each direction, on times of which the smaller are
    first raised by `ALLOWED_SHIFT`: it compares the shares of calls beyond every time there is, so
    that one call of many, fast or slow, decides nothing, and three calls of ten that are slow do.

    >>> slow = [1.0, 21.0, 21.1, 21.2] * 10
    >>> find_shift(slow, [1.0, 1.01, 1.02] * 10) > 15, find_shift([1.0] * 30, [1.05] * 30)
    (True, 1.0)
    >>> find_shift([1.0] * 30, [1.5] * 30)
    0.6666666666666666
    """
    one, other = np.sort(np.log(one_ms)), np.sort(np.log(other_ms))
    if not len(one) or not len(other):
        return 1.0
    allowed = math.log(ALLOWED_SHIFT)
    if _is_greater(one, other + allowed) or _is_greater(other, one + allowed):
        shares = np.linspace(0.05, 0.95, 19)
        gaps = np.quantile(one, shares) - np.quantile(other, shares)
        gaps = gaps[np.abs(gaps) > allowed]
        return float(np.exp(np.median(gaps))) if len(gaps) else 1.0
    return 1.0


def is_busy(machine: Any, preemptions: Sequence[int] = ()) -> bool:
    """Return whether other processes or machines took the processors from the timed calls.

    `machine` has the keys of `usage.describe_machine`, where it is known.
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
    """Return whether a speedup is not known to its stated precision, or its machine was busy.

    `interval` is the 95 % interval of the speedup; without one its precision is unknown, which
    counts as noise. `precision` is a relative half width, raised to `STATED_PRECISION`. Preempted
    calls do not count by themselves: they are left out of the interval, or widen it.

    >>> is_noisy((1.96, 2.04)), is_noisy((1.6, 2.5)), is_noisy((None, None))
    (False, True, True)
    """
    low, high = interval
    if low is None or high is None or low <= 0:
        return True
    half_width = math.sqrt(high / low) - 1
    return half_width > max(precision, STATED_PRECISION) or is_busy(machine)


def _is_greater(one: np.ndarray, other: np.ndarray) -> bool:
    """Smirnov's one-sided test on sorted values: are those of `one` greater?"""
    count, count_other = len(one), len(other)
    places = np.concatenate([one, other])
    excess = (
        np.searchsorted(other, places, "right") / count_other
        - np.searchsorted(one, places, "right") / count
    )
    distance = float(excess.max())
    if distance >= 1:  # all of one are greater than all of the other: the chance is known exactly
        return 1 / math.comb(count + count_other, count) <= SIGNIFICANCE
    chance = math.exp(-2 * distance**2 * count * count_other / (count + count_other))
    return chance <= SIGNIFICANCE


def _is_uneven(
    baseline_ms: Sequence[float],
    candidate_ms: Sequence[float],
    of_baseline: np.ndarray,
    of_candidate: np.ndarray,
) -> bool:
    """Tell whether preempted calls fall upon the arms otherwise than by the time they take.

    The chance that a call is preempted grows with its length, so the lengths are those of calls
    that were not, where there are any.
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
