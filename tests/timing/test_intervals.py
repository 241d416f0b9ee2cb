"""The speedup of pairs and its interval."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.timing.intervals import (
    _signed_rank_quantile,
    balanced_interval,
    centre_and_interval,
    log_ratios,
    speedup_interval,
    t_quantile,
)

# Student's t at 0.975, from tables.
TABLE = {
    1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 9: 2.2622, 29: 2.0452,
    120: 1.9799,
}  # fmt: skip


@pytest.mark.parametrize("degrees", TABLE)
def test_quantiles_are_those_of_the_tables(degrees: int) -> None:
    assert t_quantile(degrees) == pytest.approx(TABLE[degrees], abs=1.5e-4)


VALUES = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40)


@given(VALUES)
def test_centre_is_the_median_of_the_means_of_all_pairs(values: list[float]) -> None:
    means = [
        (left + right) / 2 for index, left in enumerate(values) for right in values[: index + 1]
    ]
    centre, low, high = centre_and_interval(values)
    assert centre == pytest.approx(statistics.median(means), abs=1e-9)
    assert low <= centre <= high


# Critical values of the signed rank test at 5 %, both sides, from tables.
CRITICAL = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 13: 17, 15: 25, 20: 52, 25: 89}


@pytest.mark.parametrize("count", CRITICAL)
def test_ranks_are_those_of_the_tables(count: int) -> None:
    assert _signed_rank_quantile(count) == CRITICAL[count]


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 12, 15])
def test_the_signed_rank_sum_is_rejected_as_often_as_it_should(count: int) -> None:
    # The exact distribution: how many of the 2**n sign patterns have each sum of ranks.
    ways = [1]
    for rank in range(1, count + 1):
        ways = [
            (ways[total] if total < len(ways) else 0)
            + (ways[total - rank] if 0 <= total - rank < len(ways) else 0)
            for total in range(len(ways) + rank)
        ]
    critical = _signed_rank_quantile(count)
    assert critical is not None
    assert 0.02 < 2 * sum(ways[: critical + 1]) / 2**count < 0.053


@given(st.lists(st.floats(-10, 10), min_size=6, max_size=30))
def test_the_interval_contains_values_that_the_test_accepts(values: list[float]) -> None:
    critical = _signed_rank_quantile(len(values))
    assert critical is not None
    _, low, high = centre_and_interval(values)
    for shift, is_inside in ((low - 0.01, False), (high + 0.01, False), ((low + high) / 2, True)):
        shifted = sorted((value - shift for value in values), key=abs)
        if len({abs(value) for value in shifted}) < len(values) or 0.0 in shifted:
            continue  # ties: the table does not hold
        positive = sum(rank for rank, value in enumerate(shifted, start=1) if value > 0)
        smaller = min(positive, len(values) * (len(values) + 1) // 2 - positive)
        assert (smaller > critical) == is_inside


def test_an_interruption_does_not_widen_the_interval() -> None:
    quiet = [math.sin(each) / 100 for each in range(30)]
    _, low, high = centre_and_interval(quiet)
    _, low_spiked, high_spiked = centre_and_interval([*quiet, 4.0])
    assert high_spiked - low_spiked < 1.3 * (high - low)


def test_few_values_have_students_interval() -> None:
    centre, low, high = centre_and_interval([1.0, 2.0, 3.0, 4.0])
    width = 3.182446 * statistics.stdev([1, 2, 3, 4]) / 2
    assert (centre, low, high) == pytest.approx((2.5, 2.5 - width, 2.5 + width))


def test_speedup_is_the_exponential_of_the_log_ratios_centre() -> None:
    baseline, candidate = [2.0, 4.0, 6.0, 9.0, 2.0, 8.0, 3.0], [1.0, 2.0, 3.0, 3.0, 2.0, 4.0, 1.5]
    centre, low, high = centre_and_interval(log_ratios(baseline, candidate))
    expected = (math.exp(centre), math.exp(low), math.exp(high))
    assert speedup_interval(baseline, candidate) == expected
    assert expected[0] == pytest.approx(2.0)


def test_one_pair_has_no_interval() -> None:
    assert speedup_interval([3.0], [1.5]) == (2.0, None, None)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    draws = random.Random(0)  # noqa: S311 - reproducible noise
    num_misses = 0
    for _ in range(2000):
        baseline = [math.exp(draws.gauss(0.1, 0.2)) for _ in range(12)]
        candidate = [math.exp(draws.gauss(0.0, 0.2)) for _ in range(12)]
        _, low, high = speedup_interval(baseline, candidate)
        assert low is not None
        assert high is not None
        num_misses += not low <= math.exp(0.1) <= high
    assert 0.035 < num_misses / 2000 < 0.065


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=30), st.floats(-5, 5), st.data())
def test_an_effect_of_the_order_changes_nothing(
    values: list[float], effect: float, data: st.DataObject
) -> None:
    orders = data.draw(
        st.lists(st.booleans(), min_size=len(values), max_size=len(values)).filter(
            lambda drawn: len({*drawn}) == 2
        )
    )
    shifted = [
        value + effect if is_second else value - effect
        for value, is_second in zip(values, orders, strict=True)
    ]
    assert balanced_interval(shifted, orders) == pytest.approx(
        balanced_interval(values, orders), abs=1e-9
    )


def test_orders_that_are_all_alike_or_few_have_no_effect_to_take_out() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert balanced_interval(values, [True] * 7) == centre_and_interval(values)
    assert balanced_interval(values[:5], [True, False] * 2 + [True]) == centre_and_interval(
        values[:5]
    )


def test_taking_the_effect_out_narrows_the_interval() -> None:
    draws = random.Random(1)  # noqa: S311 - reproducible noise
    orders = [True, False] * 20
    values = [draws.gauss(0.01 if order else -0.01, 0.005) for order in orders]
    _, low, high = balanced_interval(values, orders)
    _, plain_low, plain_high = centre_and_interval(values)
    assert high - low < 0.6 * (plain_high - plain_low)
