"""Intervals by resampling families.

Samples of one family are near copies of each other (2,495 graphs of upstream behave like some 22
independent families), so an interval over samples would be far too narrow. Families are drawn with
replacement, and each brings all of its samples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
NUM_DRAWS = 1000
_MAX_ELEMENTS = 4_000_000
"""Numbers held at once: draws are made in blocks so that a million families fit in memory."""


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
    """Return the mean over families of each family's mean, per row."""
    return (totals / sizes).mean(axis=1)


def intervals(
    totals: Floats, sizes: Floats, *, num_draws: int = NUM_DRAWS, seed: int = 0
) -> tuple[Floats, Floats] | None:
    """Return percentile intervals, each (2, rows): of the mean over samples, and over families.

    None with fewer than two families or no draws: one family says nothing about the others. The
    same seed gives the same intervals.

    >>> totals, sizes = np.array([[0.0, 1.0, 2.0]]), np.array([1.0, 1.0, 1.0])
    >>> over_samples, over_families = intervals(totals, sizes)
    >>> over_samples.round(2).tolist()
    [[0.0], [2.0]]
    """
    num_families = len(sizes)
    if num_families < 2 or num_draws < 1:
        return None
    generator = np.random.default_rng(seed)
    means = totals / sizes
    by_sample, by_family = [], []
    block = max(1, _MAX_ELEMENTS // num_families)
    for start in range(0, num_draws, block):
        rows = min(block, num_draws - start)
        drawn = generator.integers(num_families, size=(rows, num_families))
        drawn += num_families * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * num_families)
        counts = counts.reshape(rows, num_families).astype(np.float64)
        by_sample.append((counts @ totals.T) / (counts @ sizes)[:, None])
        by_family.append(counts @ means.T / num_families)
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return (
        np.quantile(np.concatenate(by_sample), tails, axis=0),
        np.quantile(np.concatenate(by_family), tails, axis=0),
    )
