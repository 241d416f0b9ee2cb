"""Summaries of arms: verdicts, S(-3), and which arms differ."""

from __future__ import annotations

import math

import pytest

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.scores import (
    Outcome,
    Summary,
    compare,
    error_aware_speedup_score,
    relative_speedup,
    speedup_score,
    summarise,
    summarise_arms,
)
from graphnet_datasets.scores.summary import can_be_compared

from .run_rows import BROKEN_EAGER, FOUR, make_run


def arm(speedups: list[float], compiler: str = "inductor", device: str = "cpu") -> list[dict]:
    """Return right records of as many families, with these speedups."""
    return [
        make_run(f"s{index}", value, family=f"f{index}", compiler=compiler, device=device)
        for index, value in enumerate(speedups)
    ]


def test_each_record_has_one_outcome() -> None:
    rows = [
        make_run("right", 2.0),
        make_run("wrong", 2.0, min_t=1.0),
        make_run("shape", status="output_mismatch"),
        make_run("crash", status="run_failed"),
        make_run("refused", status="compile_failed"),
        make_run("unclear", 2.0, undecidable_reason="Zeros agree."),
        make_run("impossible", 2.0, warnings=["impossibly_fast: 1 ns"]),
        BROKEN_EAGER,
    ]
    summary = summarise(rows)
    assert summary.num_graphs == 8
    assert dict(summary.counts) == {
        Outcome.RIGHT: 1,
        Outcome.WRONG: 2,
        Outcome.FAILED: 2,
        Outcome.UNDECIDABLE: 1,
        Outcome.NOT_COUNTED: 2,
    }
    assert summary.with_outcome(Outcome.WRONG) == ["wrong", "shape"]
    assert summary.slowest() == ("right", pytest.approx(2.0))


@pytest.mark.parametrize("variant", ["report", "upstream"])
def test_the_scores_are_those_of_the_two_functions(variant: str) -> None:
    summary = summarise(FOUR, b=0.2, variant=variant)
    s = speedup_score(FOUR, b=0.2, variant=variant).at(-3)
    assert (summary.s, summary.s_low, summary.s_high) == (s["S"], s["S_low"], s["S_high"])
    assert summary.es == error_aware_speedup_score(FOUR, b=0.2, variant=variant).at(1)["ES"]


def test_the_speedup_is_that_of_the_right_ones() -> None:
    rows = [
        *arm([2.0, 0.5, 4.0]),
        make_run("w", 100.0, min_t=2.0),
        make_run("f", status="run_failed"),
    ]
    summary = summarise(rows)
    assert summary.speedup.value == pytest.approx(4 ** (1 / 3))
    assert (summary.speedup.low, summary.speedup.num_families) == (None, 3)
    assert summary.speedup.direction is None


def test_medians_of_compile_time_and_memory() -> None:
    memory = {"baseline_peak_memory_bytes": 100, "candidate_peak_memory_bytes": 150}
    rows = [
        make_run("a", 1.0, compile_time_s=1.0, **memory),
        make_run("b", 1.0, compile_time_s=3.0),
        make_run("c", 1.0, compile_time_s=8.0),
    ]
    summary = summarise(rows)
    assert (summary.compile_s, summary.memory_ratio) == (3.0, 1.5)


def test_without_a_record_that_counts_there_is_no_score() -> None:
    summary = summarise([BROKEN_EAGER])
    assert (summary.s, summary.es, summary.speedup.value, summary.slowest()) == (None,) * 4


def test_several_arms_and_duplicates_are_refused() -> None:
    with pytest.raises(ScoreError, match="2 arms"):
        summarise([make_run("a", 1.0), make_run("a", 1.0, compiler="tvm")])
    with pytest.raises(ScoreError, match="1 sample with several runs"):
        summarise([make_run("a", 1.0), make_run("a", 2.0)])
    newest = summarise([make_run("a", 1.0), make_run("a", 2.0)], duplicates="newest")
    assert newest.s == pytest.approx(2.0)


def test_arms_are_sorted_by_their_score() -> None:
    summaries = summarise_arms({"slow": arm([0.5]), "none": [BROKEN_EAGER], "fast": arm([2.0])})
    assert [summary.name for summary in summaries] == ["fast", "slow", "none"]


def test_arms_are_compared_on_common_right_samples_as_compare_does() -> None:
    first, second = arm([1.0, 1.1, 0.9, 1.2, 1.0, 3.0]), arm([2.0, 2.3, 1.9, 2.2, 2.0], "tvm")
    first[5] |= {"min_t": 2.0}
    both = summarise(first, "a"), summarise(second, "b")
    mean = relative_speedup(*both)
    expected = compare(first, second)
    assert (mean.value, mean.low, mean.high) == (expected.speedup, expected.low, expected.high)
    assert (mean.num_families, mean.direction) == (5, 1)
    assert relative_speedup(*reversed(both)).direction == -1


def test_arms_of_other_devices_or_samples_cannot_be_compared() -> None:
    def named(**columns: str) -> Summary:
        return summarise([make_run("a", 1.0) | columns])

    assert can_be_compared(named(), named(compiler="tvm"))
    assert can_be_compared(named(device="cuda:0"), named(device="cuda:1"))
    assert not can_be_compared(named(), named(device="cuda:0"))
    assert not can_be_compared(named(), named(sample_id="b"))


def test_as_data() -> None:
    data = summarise(FOUR).to_dict()
    assert data["graphs"] == 4
    assert (data["right"], data["failed"], data["families"]) == (1, 2, 1)
    assert math.isclose(data["S(-3)"], speedup_score(FOUR).at(-3)["S"])
