"""Two-sample tests on paired draws: exact levels, and what they are compared with."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet_datasets.benchmark.judging.sign_flips import (
    normal_scores,
    repetition_p,
    sign_flip_p,
)

stats = pytest.importorskip("scipy.stats")


def test_the_p_value_is_never_below_that_of_all_sign_flips() -> None:
    generator = np.random.default_rng(0)
    flips = 1 - 2 * ((np.arange(2**10)[:, None] >> np.arange(10)) & 1)
    for shift in (0.0, 1.0, 3.0):
        left, right = generator.normal(size=10) + shift, generator.normal(size=10)
        sums = np.abs(flips @ (left - right))
        exact = float((sums >= abs((left - right).sum()) - 1e-12).mean())
        assert sign_flip_p(left, right) >= exact


def test_the_signs_alone_have_the_p_value_of_a_binomial_test() -> None:
    left = np.concatenate([np.ones(60), np.zeros(4)])
    p = sign_flip_p(left, 1 - left)
    assert p == pytest.approx(2 * stats.binomtest(60, 64).pvalue)


def test_the_power_is_about_that_of_a_paired_t_test() -> None:
    generator = np.random.default_rng(1)
    left, right = generator.normal(0.5, size=400), generator.normal(size=400)
    ours, theirs = sign_flip_p(left, right), stats.ttest_rel(left, right).pvalue
    assert theirs < 1e-8
    assert np.log(ours) == pytest.approx(np.log(theirs), rel=0.15)


def test_normal_scores_are_those_of_van_der_waerden() -> None:
    values = np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    table = stats.norm.ppf(np.arange(1, 6) / 6)
    expected = [table[3], table[0], table[1:3].mean(), table[1:3].mean(), table[4]]
    assert normal_scores(values) == pytest.approx(expected)


def test_repetitions_in_both_arms_say_nothing() -> None:
    different = [bytes([number]) for number in range(32)]
    in_turn = [b"xy"[number % 2 : number % 2 + 1] for number in range(32)]
    assert repetition_p(different, [*different]) == 1.0
    assert repetition_p(in_turn, [b"x"] * 32) == 1.0
    assert repetition_p(different, [b"--"] * 32) == 33 / 2**32
    assert repetition_p(different[:2], different[2:4]) == 1.0
    assert repetition_p(different, different[:1] * 32) == 2.0**-31


def test_levels_hold_for_any_distribution() -> None:
    """At a level of 1 %, equal distributions are found different in 1 % at most, and by chance."""
    generator = np.random.default_rng(2)
    draws = [
        generator.normal(size=(2000, 64)),
        generator.standard_cauchy(size=(2000, 64)),
        (generator.random((2000, 64)) < 0.1).astype(float),
    ]
    for each in draws:
        p_values = np.array([sign_flip_p(row[:32], row[32:]) for row in each])
        assert (p_values < 0.01).mean() < 0.016
