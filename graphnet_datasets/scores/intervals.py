"""Confidence intervals of means over families, including small numbers of families.

Samples of one family are near copies of each other (2,495 upstream graphs behave like about 22
independent families), so an interval over samples would be far too narrow. The unit is therefore
the family. Speedups are skewed, and failures increase the skewness. Hall's transformation (On the
removal of skewness by transformation, Journal of the Royal Statistical Society B 54, 1992) removes
the skewness of the studentised mean, which is then compared with Student's t. It has a closed form,
needs no resampling, and had the best coverage of all methods tried
(`benchmarks/interval_coverage.py`, docs/scores.md).

Timing uncertainty is also included: the interval is never narrower than the samples' own timing
intervals imply, however much the families agree.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MIN_FAMILIES = 5
"""With fewer families, no tried method came near 95 % coverage: if one family in ten fails, half of
such draws contain no failing family.
"""

NORMAL_QUANTILE = 1.959963984540054


def family_totals(
    values: Floats, family: npt.NDArray[np.int64], num_families: int
) -> tuple[Floats, Floats]:
    """Return the sum of `values` (rows, samples) in each family, (rows, families), and their sizes.

    >>> family_totals(np.array([[1.0, 2.0, 3.0]]), np.array([0, 1, 0]), 2)
    (array([[4., 2.]]), array([2., 1.]))
    """
    totals = np.empty((len(values), num_families))
    for row, total in zip(values, totals, strict=True):
        total[:] = np.bincount(family, weights=row, minlength=num_families)
    return totals, np.bincount(family, minlength=num_families).astype(np.float64)


def family_means(totals: Floats, sizes: Floats) -> Floats:
    """Return the mean of the family means for each row."""
    return (totals / sizes).mean(axis=1)


def intervals(
    totals: Floats, sizes: Floats, timing: Floats | None = None
) -> tuple[Floats, Floats] | None:
    """Return 95 % intervals, each (2, rows): of the mean over samples, and over families.

    `totals` and `sizes` come from `family_totals`. `timing` contains the summed squared standard
    errors of each family's samples, (rows, families), if known. Returns None with fewer than
    `MIN_FAMILIES` families.

    >>> totals, sizes = np.array([[0.0, 1.0, 2.0, 3.0, 4.0]]), np.ones(5)
    >>> over_samples, over_families = intervals(totals, sizes)
    >>> over_samples.round(2).tolist()
    [[0.04], [3.96]]
    """
    num_families = len(sizes)
    if num_families < MIN_FAMILIES:
        return None
    if timing is None:
        timing = np.zeros_like(totals)
    # A ratio of sums behaves like the mean of its linear parts, one per family.
    mean = totals.sum(axis=1) / sizes.sum()
    parts = mean[:, None] + (totals - mean[:, None] * sizes) / sizes.mean()
    # If a few families contain most samples, the effective number of families is smaller.
    effective = float(sizes.sum() ** 2 / (sizes**2).sum())
    over_samples = _interval(parts, mean, effective)
    over_families = _interval(totals / sizes, family_means(totals, sizes), num_families)
    return (
        _at_least(over_samples, mean, timing.sum(axis=1) / sizes.sum() ** 2),
        _at_least(
            over_families,
            family_means(totals, sizes),
            (timing / sizes**2).sum(axis=1) / num_families**2,
        ),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean of speedups with its 95 % interval over families.

    `value` is None without samples, `low` and `high` also with fewer than `MIN_FAMILIES` families.
    """

    value: float | None
    low: float | None
    high: float | None
    num_families: int

    @property
    def direction(self) -> int | None:
        """1 if the interval is above 1, -1 if below 1, 0 if it contains 1; None without one."""
        if self.low is None or self.high is None:
            return None
        return int(self.low > 1) - int(self.high < 1)

    def families_needed(self) -> int | None:
        """Estimate the number of families needed for the interval to exclude 1.

        This assumes that the width is proportional to the inverse square root of the number. None
        without an interval, or with a mean of exactly 1.

        >>> Mean(1.16, 0.93, 1.41, 6).families_needed()
        12
        """
        if self.value is None or self.low is None or self.high is None or self.value == 1:
            return None
        half_width = (math.log(self.high) - math.log(self.low)) / 2
        ratio = half_width / abs(math.log(self.value))
        return max(math.ceil(self.num_families * ratio**2), self.num_families + 1)


def geometric_means(
    log_ratio: Floats, log_error: Floats, family: npt.NDArray[np.int64]
) -> tuple[Mean, Mean]:
    """Return the geometric means over samples and over families, each with its interval.

    `log_ratio` has the logarithms of the ratios, `log_error` their standard errors and `family`
    the number of each sample's family, all of shape (samples,).

    >>> mean, _ = geometric_means(np.log([2.0, 0.5]), np.zeros(2), np.array([0, 1]))
    >>> mean
    Mean(value=1.0, low=None, high=None, num_families=2)
    """
    if len(log_ratio) == 0:
        nothing = Mean(None, None, None, 0)
        return nothing, nothing
    _, family = np.unique(family, return_inverse=True)
    num_families = int(family.max()) + 1
    totals, sizes = family_totals(log_ratio[None, :], family, num_families)
    timing, _ = family_totals(log_error[None, :] ** 2, family, num_families)
    centres = log_ratio.mean(), family_means(totals, sizes)[0]
    interval_pair = intervals(totals, sizes, timing)
    means = []
    for index, centre in enumerate(centres):
        low, high = (
            (None, None) if interval_pair is None else np.exp(interval_pair[index][:, 0]).tolist()
        )
        means.append(Mean(math.exp(centre), low, high, num_families))
    return means[0], means[1]


def _at_least(interval: Floats, mean: Floats, variance: Floats) -> Floats:
    """Widen an interval to at least the uncertainty of the timing."""
    width = NORMAL_QUANTILE * np.sqrt(variance)
    return np.stack([np.minimum(interval[0], mean - width), np.maximum(interval[1], mean + width)])


def _interval(values: Floats, mean: Floats, effective: float) -> Floats:
    """Return Hall's interval of the mean of each row of `values`, (rows, families), as (2, rows).

    With T the studentised mean of n values and g their skewness, the transformed T + g (T^2 / 3 + 1
    / 6) / sqrt(n) + g^2 T^3 / (27 n) has almost no skewness. It increases with T, so it can be
    inverted at both quantiles.
    """
    count = values.shape[1]
    centred = values - mean[:, None]
    second, third = (centred**2).mean(axis=1), (centred**3).mean(axis=1)
    # Rounding leaves a small spread even for equal values.
    has_spread = second > 1e-28 * (1 + mean**2)
    skewness = np.where(has_spread, third / np.where(has_spread, second, 1.0) ** 1.5, 0.0)
    standard_error = np.sqrt(np.where(has_spread, second, 0.0) / (count - 1))
    quantile = t_quantile(max(effective - 1, 1.0))
    ends = []
    for sign in (1, -1):
        x = sign * quantile / math.sqrt(count)
        # (3 / g) (cbrt(1 + g (x - g / (6 n))) - 1), whose limit at g = 0 is x.
        is_skewed = np.abs(skewness) > 1e-6
        safe = np.where(is_skewed, skewness, 1.0)
        shifted = np.cbrt(1 + safe * (x - safe / (6 * count)))
        t = math.sqrt(count) * np.where(is_skewed, 3 / safe * (shifted - 1), x)
        ends.append(mean - t * standard_error)
    return np.stack(ends)


@functools.cache
def t_quantile(degrees: float) -> float:
    """Return the 0.975 quantile of Student's t with `degrees` of freedom, which may be fractional.

    It bisects on the tail probability, an incomplete beta function (Abramowitz and Stegun, 26.7.1).

    >>> round(t_quantile(4), 6), round(t_quantile(1e6), 6)
    (2.776445, 1.959966)
    """
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        tail = _incomplete_beta(degrees / (degrees + middle**2), degrees / 2, 0.5)
        low, high = (middle, high) if tail > 1 - CONFIDENCE else (low, middle)
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function by its continued fraction (Lentz)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):  # the continued fraction converges fast on the other side
        return 1 - _incomplete_beta(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * result
