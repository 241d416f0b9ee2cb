"""Intervals over families."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphnet_datasets.scores import speedup_score
from graphnet_datasets.scores.intervals import (
    MIN_FAMILIES,
    family_means,
    family_totals,
    intervals,
    t_quantile,
)

from .run_rows import make_run


@pytest.mark.parametrize("num_families", [1, 2, 4, 5, 6])
def test_fewer_than_five_families_give_no_interval(num_families: int) -> None:
    runs = [
        make_run(f"{family} {copy}", 1.0 + family, family=str(family))
        for family in range(num_families)
        for copy in range(3)
    ]
    row = speedup_score(runs).at(0)
    ends = [row[name] for name in ("S_low", "S_high", "S_family_low", "S_family_high")]
    if num_families < MIN_FAMILIES:
        assert ends == [None] * 4
    else:
        assert row["S_low"] < row["S"] < row["S_high"]
        assert row["S_family_low"] < row["S_family"] < row["S_family_high"]


def test_none_are_given_where_none_are_wanted() -> None:
    runs = [make_run(str(index), 1.0 + index, family=str(index)) for index in range(9)]
    for variant in ("report", "decidable"):
        row = speedup_score(runs, variant=variant, has_intervals=False).at(-3)
        assert row["S"] is not None
        assert row["S_low"] is row["S_high"] is row["S_family_low"] is None


def test_families_without_spread_have_a_point_interval() -> None:
    sizes = np.array([1.0, 2.0, 4.0, 1.0, 8.0])
    bounds = intervals(2.0 * sizes[None, :], sizes)
    assert bounds is not None
    np.testing.assert_allclose(np.concatenate(bounds), 2.0, rtol=1e-12)


def test_timing_uncertainty_is_the_minimum_width() -> None:
    def row(width: float) -> dict[str, float]:
        interval = {"speedup_low": 2 * math.exp(-width), "speedup_high": 2 * math.exp(width)}
        runs = [make_run(f"{i}", 2.0, family=f"{i // 2}", **interval) for i in range(12)]
        return speedup_score(runs).at(0)

    assert row(0.0)["S_low"] == pytest.approx(2.0)
    # Twelve independent samples: the mean's interval is sqrt(12) times narrower than theirs.
    assert row(0.3)["S_low"] == pytest.approx(2 * math.exp(-0.3 / math.sqrt(12)))
    assert row(0.3)["S_family_high"] == pytest.approx(2 * math.exp(0.3 / math.sqrt(12)))


def test_the_timing_of_slow_samples_counts_with_their_penalty() -> None:
    columns = {"speedup_low": 0.5 * math.exp(-0.2), "speedup_high": 0.5 * math.exp(0.2)}
    runs = [make_run(str(i), 0.5, family=str(i), **columns) for i in range(5)]
    row = speedup_score(runs, p=1.0).at(0)
    assert row["S"] == pytest.approx(0.25)
    assert row["S_low"] == pytest.approx(0.25 * math.exp(-2 * 0.2 / math.sqrt(5)))


def test_samples_of_one_family_do_not_narrow_the_interval() -> None:
    def width(copies: int) -> float:
        runs = [
            make_run(f"{family} {copy}", 1.0 + family, family=str(family))
            for family in range(8)
            for copy in range(copies)
        ]
        row = speedup_score(runs).at(0)
        return row["S_high"] - row["S_low"]

    assert width(1) == pytest.approx(width(50), rel=1e-9)


def test_a_family_with_most_samples_widens_the_interval_over_samples() -> None:
    values = np.linspace(-1, 1, 12)
    even, odd = np.ones(12), np.array([50.0] + [1.0] * 11)
    widths = []
    for sizes in (even, odd):
        bounds = intervals((values * sizes)[None, :], sizes)
        assert bounds is not None
        widths.append(float(bounds[0][1, 0] - bounds[0][0, 0]))
    assert widths[1] > widths[0]


@pytest.mark.parametrize(
    ("num_families", "failing", "least"),
    [(5, 0.0, 0.93), (8, 0.0, 0.93), (30, 0.0, 0.93), (5, 0.3, 0.85), (8, 0.3, 0.92)],
)
def test_the_interval_covers_the_true_mean_about_as_often_as_stated(
    num_families: int, failing: float, least: float
) -> None:
    """Each row is a draw, so one call computes thousands of intervals."""
    generator = np.random.default_rng(1)
    shape = (4000, num_families)
    fails = generator.random(shape) < failing
    values = np.where(fails, math.log(0.1), generator.normal(0.2, 0.4, shape))
    truth = failing * math.log(0.1) + (1 - failing) * 0.2
    bounds = intervals(values, np.ones(num_families))
    assert bounds is not None
    for low, high in bounds:
        covered = float(((low <= truth) & (truth <= high)).mean())
        assert least <= covered <= 0.985


def test_the_interval_is_the_negative_of_that_of_the_negatives() -> None:
    values = np.random.default_rng(2).exponential(size=(20, 7))
    there, back = intervals(values, np.ones(7)), intervals(-values, np.ones(7))
    assert there is not None
    assert back is not None
    np.testing.assert_allclose(there[0], -back[0][::-1], rtol=1e-9)


def test_student_quantiles_agree_with_tables() -> None:
    quantiles = {1: 12.7062, 2: 4.3027, 4: 2.7764, 9: 2.2622, 30: 2.0423, 1e7: 1.96}
    for degrees, quantile in quantiles.items():
        assert t_quantile(degrees) == pytest.approx(quantile, abs=1e-4)
    assert t_quantile(4) < t_quantile(3.5) < t_quantile(3)


def test_totals_and_means_of_families() -> None:
    totals, sizes = family_totals(np.array([[1.0, 2.0, 6.0]]), np.array([1, 0, 1]), 2)
    np.testing.assert_array_equal(totals, [[2.0, 7.0]])
    np.testing.assert_array_equal(family_means(totals, sizes), [(2.0 + 3.5) / 2])
