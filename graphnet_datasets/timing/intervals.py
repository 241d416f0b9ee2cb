"""Interval estimates for speedups measured in interleaved pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

_NORMAL_975 = 1.959963984540054
_T_975_OF_FEW = (math.inf, 12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836)
"""Student's t at 0.975 for 0 to 5 degrees of freedom, where the expansion is inaccurate."""


def t_quantile(degrees: int) -> float:
    """Return the 0.975 quantile of Student's t distribution, accurate to 1e-4.

    Uses the expansion in 1 / degrees around the normal quantile, Abramowitz and Stegun 26.7.5.

    >>> round(t_quantile(9), 3), round(t_quantile(99), 3)
    (2.262, 1.984)
    """
    if degrees < len(_T_975_OF_FEW):
        return _T_975_OF_FEW[degrees]
    z = _NORMAL_975
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / degrees**power for power, term in enumerate(terms, start=1))


def centre_and_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return a rank-based centre of `values` and the ends of its 95 % interval.

    The centre is the Hodges-Lehmann estimate: the median of the means of all pairs of values,
    including each value paired with itself. The interval inverts Wilcoxon's signed rank test
    (Hollander and Wolfe, chapter 3). Only symmetric noise is assumed; an interval for the mean
    would be far too wide if one call in fifty is interrupted. For normal noise the method needs 5 %
    more values than the mean. No value is removed.

    With fewer than six values the signed rank interval does not exist, and Student's interval
    around the same centre is used. For a single value the interval is infinite.

    >>> centre_and_interval([1.0] * 10)
    (1.0, 1.0, 1.0)
    """
    array = np.asarray(values, np.float64)
    count = len(array)
    means = (array[:, None] + array[None, :])[np.triu_indices(count)] / 2
    last = len(means) - 1
    rank = _signed_rank_quantile(count)
    means.partition(sorted({last // 2, (last + 1) // 2, rank or 0, last - (rank or 0)}))
    centre = float(means[last // 2] + means[(last + 1) // 2]) / 2
    if rank is not None:
        return centre, float(means[rank]), float(means[last - rank])
    if count < 2:
        return centre, -math.inf, math.inf
    width = t_quantile(count - 1) * float(array.std(ddof=1)) / math.sqrt(count)
    return centre, centre - width, centre + width


def balanced_interval(
    values: Sequence[float], is_second_kind: Sequence[bool]
) -> tuple[float, float, float]:
    """Return `centre_and_interval` after removing a constant shift between two kinds of values.

    The first call of a pair is slower, by about 1 % for a small call. The order of a pair therefore
    shifts its log ratio up or down. If this shift remained, it would widen the interval and, with
    unbalanced orders, move its centre. The function removes half of the Hodges-Lehmann shift
    between the two kinds from each value. Because it estimates this second parameter, it widens the
    interval by sqrt(n / (n - 2)): each estimated mean costs the variance one degree of freedom.

    With fewer than six values, or values of one kind only, nothing is removed.

    >>> balanced_interval([1.0, 3.0] * 4, [False, True] * 4)
    (2.0, 2.0, 2.0)
    """
    array, kinds = np.asarray(values, np.float64), np.asarray(is_second_kind, np.bool_)
    count = len(array)
    if count < 6 or kinds.all() or not kinds.any():
        return centre_and_interval(values)
    shift = float(np.median(array[kinds][:, None] - array[~kinds][None, :])) / 2
    centre, low, high = centre_and_interval(np.where(kinds, array - shift, array + shift).tolist())
    factor = math.sqrt(count / (count - 2))
    return centre, centre - (centre - low) * factor, centre + (high - centre) * factor


def _signed_rank_quantile(count: int) -> int | None:
    """Return the largest signed rank sum that a two-sided 5 % test rejects, or None."""
    if count < 10:
        return {6: 0, 7: 2, 8: 3, 9: 5}.get(count)
    mean = count * (count + 1) / 4
    deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    return math.floor(mean - _NORMAL_975 * deviation)


def log_ratios(baseline_ms: Sequence[float], candidate_ms: Sequence[float]) -> list[float]:
    """Return log(baseline / candidate) of each pair."""
    return [
        math.log(baseline / candidate)
        for baseline, candidate in zip(baseline_ms, candidate_ms, strict=True)
    ]


def speedup_interval(
    baseline_ms: Sequence[float],
    candidate_ms: Sequence[float],
    is_candidate_first: Sequence[bool] | None = None,
) -> tuple[float, float | None, float | None]:
    """Return the speedup of the pairs and the ends of its 95 % interval.

    The speedup is exp of the centre of the log ratios. The interval comes from `balanced_interval`
    if the orders of the pairs are given, otherwise from `centre_and_interval`. The ends are None
    for a single pair.

    >>> speedup_interval([2.0, 2.0], [1.0, 1.0])
    (2.0, 2.0, 2.0)
    """
    ratios = log_ratios(baseline_ms, candidate_ms)
    orders = [False] * len(ratios) if is_candidate_first is None else is_candidate_first
    centre, low, high = balanced_interval(ratios, orders)
    if low == -math.inf:
        return math.exp(centre), None, None
    return math.exp(centre), math.exp(low), math.exp(high)


def shift_interval(
    baseline_ms: Sequence[float], candidate_ms: Sequence[float]
) -> tuple[float, float | None, float | None]:
    """Return the ratio of two unpaired samples and its rank-based 95 % interval.

    The ratio is exp of the Hodges-Lehmann shift: the median of all differences of logarithms. The
    interval inverts the Mann-Whitney test (Hollander and Wolfe, chapter 4). The ends are None if
    either sample has fewer than four times.

    >>> shift_interval([2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0])
    (2.0, 2.0, 2.0)
    """
    baseline, candidate = np.log(baseline_ms), np.log(candidate_ms)
    differences = np.sort((baseline[:, None] - candidate[None, :]).ravel())
    shift = math.exp(float(np.median(differences)))
    num_baseline, num_candidate = len(baseline), len(candidate)
    if min(num_baseline, num_candidate) < 4:
        return shift, None, None
    spread = math.sqrt(num_baseline * num_candidate * (num_baseline + num_candidate + 1) / 12)
    rank = max(math.floor(num_baseline * num_candidate / 2 - _NORMAL_975 * spread), 0)
    return shift, math.exp(float(differences[rank])), math.exp(float(differences[-1 - rank]))


def unpaired_speedup(
    baseline_ms: Sequence[float], candidate_ms: Sequence[float]
) -> tuple[float, float | None, float | None]:
    """Return the ratio of geometric means of two unpaired samples and its 95 % interval (Welch).

    The ends are None if either sample has a single time.

    >>> unpaired_speedup([2.0, 2.0], [1.0, 1.0])
    (2.0, 2.0, 2.0)
    """
    logs = [[math.log(value) for value in arm] for arm in (baseline_ms, candidate_ms)]
    means = [statistics.fmean(arm_logs) for arm_logs in logs]
    difference = means[0] - means[1]
    if min(map(len, logs)) < 2:
        return math.exp(difference), None, None
    shares = [statistics.variance(arm_logs) / len(arm_logs) for arm_logs in logs]
    total = sum(shares)
    if total == 0:
        return math.exp(difference), math.exp(difference), math.exp(difference)
    degrees = total**2 / sum(
        share**2 / (len(arm_logs) - 1) for share, arm_logs in zip(shares, logs, strict=True)
    )
    width = t_quantile(max(int(degrees), 1)) * math.sqrt(total)
    return math.exp(difference), math.exp(difference - width), math.exp(difference + width)
