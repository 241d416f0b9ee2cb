"""Intervals over families."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet_datasets.scores import bootstrap, speedup_score
from graphnet_datasets.scores.bootstrap import family_means, family_totals, intervals

from .run_rows import make_run


def test_one_family_gives_no_interval() -> None:
    scores = speedup_score([make_run("a", 2.0, family="f"), make_run("b", 3.0, family="f")])
    row = scores.at(0)
    assert row["S_low"] is row["S_high"] is row["S_family_low"] is row["S_family_high"] is None


def test_no_draws_give_no_interval() -> None:
    assert intervals(np.ones((1, 3)), np.ones(3), num_draws=0) is None


def test_families_without_spread_give_a_point() -> None:
    totals, sizes = np.array([[2.0, 4.0, 8.0]]), np.array([1.0, 2.0, 4.0])
    found = intervals(totals, sizes)
    assert found is not None
    np.testing.assert_allclose(np.concatenate(found), 2.0, rtol=1e-14)


def test_samples_of_one_family_do_not_narrow_the_interval() -> None:
    def width(copies: int) -> float:
        runs = [
            make_run(f"{family} {copy}", 1.0 + family, family=str(family))
            for family in range(8)
            for copy in range(copies)
        ]
        row = speedup_score(runs).at(0)
        return row["S_high"] - row["S_low"]

    assert width(1) == pytest.approx(width(50), rel=1e-12)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        values = generator.normal(size=(1, 60))
        over_samples, _ = intervals(values, np.ones(60), num_draws=400, seed=trial) or (None, None)
        assert over_samples is not None
        hits += over_samples[0, 0] <= 0 <= over_samples[1, 0]
    assert 178 <= hits <= 199


def test_blocks_of_draws_give_what_one_block_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = np.arange(14.0).reshape(2, 7)
    whole = intervals(totals, np.ones(7), num_draws=100, seed=3)
    monkeypatch.setattr(bootstrap, "_MAX_ELEMENTS", 70)
    blocks = intervals(totals, np.ones(7), num_draws=100, seed=3)
    np.testing.assert_allclose(np.array(whole), np.array(blocks), rtol=1e-14)


def test_the_seed_decides_the_draws() -> None:
    runs = [make_run(str(index), 1.0 + index, family=str(index)) for index in range(9)]
    first, again, other = (speedup_score(runs, seed=seed).at(0)["S_low"] for seed in (0, 0, 1))
    assert first == again != other


def test_totals_and_means_of_families() -> None:
    totals, sizes = family_totals(np.array([[1.0, 2.0, 6.0]]), np.array([1, 0, 1]), 2)
    np.testing.assert_array_equal(totals, [[2.0, 7.0]])
    np.testing.assert_array_equal(family_means(totals, sizes), [(2.0 + 3.5) / 2])
