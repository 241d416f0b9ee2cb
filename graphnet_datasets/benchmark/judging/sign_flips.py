"""Two-sample tests on paired draws, exact for any distribution.

Draw i of one arm and draw i of the other use the same inputs. If both arms draw from the same
distribution, swapping the two draws changes nothing. The difference of any statistic is then
positive or negative with equal probability. The tests assume nothing about the distribution or
about dependencies between the elements of a draw.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SUM_FACTOR = 1 / (2 * math.erfc(1.0))
"""The smallest c with P(sum of a_i e_i >= z) <= c P(N >= z) for random signs e_i, a unit vector a
and a standard normal N: Bentkus and Dzindzalieta, "A tight Gaussian bound for weighted sums of
Rademacher random variables", Bernoulli 21 (2015)."""
_LEAST_Z = 4.0
"""Below this value the binomial test is skipped: its p-value would be too large to matter."""


def sign_flip_p(left: Floats, right: Floats) -> float:
    """Return the two-sided p-value of one statistic of paired draws, (m,) and (m,).

    The p-value is twice the smaller of two p-values, both valid for any number of draws: for the
    sum of the differences, by the bound of Bentkus and Dzindzalieta, and for their signs, by the
    binomial distribution.

    >>> sign_flip_p(np.zeros(4), np.zeros(4))
    1.0
    >>> sign_flip_p(np.arange(40.0), np.arange(40.0) + 1) == 4 * 0.5**40
    True
    """
    differences = left - right
    differences = differences[differences != 0]
    if differences.size == 0:
        return 1.0
    differences = differences / np.abs(differences).max()
    z = abs(float(differences.sum())) / math.sqrt(float((differences**2).sum()))
    p = _SUM_FACTOR * math.erfc(z / math.sqrt(2))
    num_positive = int((differences > 0).sum())
    most = max(num_positive, differences.size - num_positive)
    if (2 * most - differences.size) / math.sqrt(differences.size) > _LEAST_Z:
        p = min(p, 2 * _binomial_tail(differences.size, most))
    return min(1.0, 2 * p)


def repetition_p(left: Sequence[bytes], right: Sequence[bytes]) -> float:
    """Return the p-value of draws that repeat within `right` and never within `left`.

    Of c equal draws from different pairs, at most one is in `left` with a probability of (c + 1) /
    2^c. If two of them form a pair, the others are in `right` with a probability of 1 / 2^(c - 2).
    The p-value is the product over all sets of equal draws, or 1 if draws of `left` repeat too.

    >>> different, equal = [bytes([i]) for i in range(40)], [b"x"] * 40
    >>> repetition_p(different, different), repetition_p(different, equal) == 41 / 2**40
    (1.0, True)
    """
    if len(set(left)) < len(left):
        return 1.0
    whole_pairs = Counter(draw for draw, other in zip(left, right, strict=True) if draw == other)
    p = 1.0
    for draw, count in Counter([*left, *right]).items():
        if whole_pairs[draw]:
            p *= 0.5 ** (count - 2)
        elif count > 1:
            p *= (count + 1) * 0.5**count
    return p


def normal_scores(values: Floats) -> Floats:
    """Return the normal score of the rank of each value of `values`, (n,); ties share a score.

    >>> normal_scores(np.array([3.0, 1.0, 2.0])).round(3)
    array([ 0.674, -0.674,  0.   ])
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    totals = np.concatenate([[0.0], np.cumsum(_score_table(len(values)))])
    means = (totals[ends] - totals[ends - counts]) / counts
    return means[inverse]


@functools.lru_cache(maxsize=16)
def _score_table(count: int) -> Floats:
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf((rank + 1) / (count + 1)) for rank in range(count)])


def _binomial_tail(count: int, least: int) -> float:
    """Return the probability of at least `least` heads in `count` tosses of a fair coin."""
    total = term = math.comb(count, least)
    for heads in range(least, count):
        term = term * (count - heads) // (heads + 1)
        total += term
    return total / (1 << count)
