"""Two run sets against each other."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.schema import Status
from graphnet_datasets.scores import compare, speedup_score

from .run_rows import BROKEN_EAGER, make_run, run_rows


def timed(name: str, speedup: float, width: float = 0.0, **columns: Any) -> dict[str, Any]:
    """Return a run whose 95 % interval is `speedup` times and by e^width."""
    columns |= {
        "speedup_low": speedup * math.exp(-width),
        "speedup_high": speedup * math.exp(width),
    }
    return make_run(name, speedup, **columns)


A = [
    timed("slower", 2.0, 0.01, family="f"),
    timed("faster", 1.0, 0.01, family="f"),
    timed("noisy", 1.0, 0.3, family="g"),
    timed("same", 1.0, 0.01, family="h"),
    timed("crashes", 3.0, family="h"),
    timed("wrong", 3.0, family="h"),
    make_run("fixed", status="compile_failed", family="h"),
    make_run("failing", status="compile_failed", family="h"),
    make_run("gone", 1.0, family="h"),
    BROKEN_EAGER,
]
B = [
    timed("slower", 1.0, 0.01, family="f"),
    timed("faster", 2.0, 0.01, family="f"),
    timed("noisy", 0.8, 0.3, family="g"),
    timed("same", 0.97, 0.001, family="h"),
    make_run("crashes", status="run_failed", family="h"),
    timed("wrong", 3.0, family="h", min_t=2.0),
    timed("fixed", 1.0, family="h"),
    make_run("failing", status="run_failed", family="h"),
    make_run("new", 1.0, family="h"),
    make_run("broken eager", 1.0),
]
VERDICTS = {
    "slower": "slower",
    "faster": "faster",
    "noisy": "same",
    "same": "same",
    "crashes": "broken",
    "wrong": "broken",
    "fixed": "fixed",
    "failing": "failing",
}


def test_every_verdict() -> None:
    comparison = compare(A, B)
    assert {row["sample_id"]: row["verdict"] for row in comparison.samples} == VERDICTS
    assert comparison.counts == {
        "broken": 2,
        "slower": 1,
        "same": 2,
        "faster": 1,
        "fixed": 1,
        "failing": 1,
    }
    assert [row["sample_id"] for row in comparison.regressions] == ["crashes", "wrong", "slower"]
    assert comparison.only_in_a == ("gone",)
    assert comparison.only_in_b == ("broken eager", "new")


def test_the_speedup_is_over_samples_that_are_correct_in_both() -> None:
    comparison = compare(A, B)
    assert comparison.num_pairs == 4
    assert comparison.speedup == pytest.approx((0.5 * 2 * 0.8 * 0.97) ** 0.25)
    assert comparison.family_speedup == pytest.approx((1 * 0.8 * 0.97) ** (1 / 3))
    assert comparison.low is not None
    assert comparison.high is not None
    assert comparison.low <= comparison.speedup <= comparison.high
    assert comparison.family_low is not None
    assert comparison.family_high is not None
    assert comparison.family_low <= comparison.family_speedup <= comparison.family_high
    found = comparison.to_dict()
    assert found["family_speedup_low"] == comparison.family_low


def test_the_scores_are_of_the_common_samples() -> None:
    comparison = compare(A, B)
    names = set(VERDICTS)
    for scores, runs in zip(comparison.s, (A, B), strict=True):
        common = [run for run in runs if run["sample_id"] in names]
        assert scores["S"] == pytest.approx(speedup_score(common)["S"], nan_ok=True)


def test_intervals_of_two_runs_add_as_squares() -> None:
    (row,) = compare([timed("x", 1.0, 0.03)], [timed("x", 2.0, 0.04)]).samples
    assert (row["low"], row["high"]) == pytest.approx((2 * math.exp(-0.05), 2 * math.exp(0.05)))


def test_latencies_can_be_compared() -> None:
    a = [make_run("x", 9.0, candidate_latency_ms=[2.0, 8.0])]
    b = [make_run("x", 1.0, candidate_latency_ms=[2.0])]
    assert compare(a, b, basis="latency").speedup == pytest.approx(2.0)
    assert compare(a, b).speedup == pytest.approx(1 / 9)
    with pytest.raises(ScoreError) as error:
        compare(a, [make_run("x", 1.0)], basis="latency")
    assert str(error.value) == (
        "The run of `x` has no `candidate_latency_ms`, so that latencies cannot be compared; "
        "compare speedups."
    )


def test_another_graph_under_the_same_name_is_no_pair() -> None:
    comparison = compare(
        [make_run("x", 1.0, signature_hash="1"), make_run("y", 1.0, signature_hash="1")],
        [make_run("x", 1.0, signature_hash="2"), make_run("y", 1.0)],
    )
    assert comparison.only_in_a == comparison.only_in_b == ("x",)


@given(run_rows(statuses=(Status.OK, Status.RUN_FAILED)))
def test_a_run_set_against_itself_has_no_regressions(rows: list[dict[str, Any]]) -> None:
    comparison = compare(rows, rows)
    assert comparison.regressions == []
    assert comparison.speedup in (None, pytest.approx(1.0))
    assert {row["verdict"] for row in comparison.samples} <= {"same", "failing"}


@given(run_rows(statuses=(Status.OK, Status.RUN_FAILED)), run_rows(statuses=(Status.OK,)))
def test_turning_the_comparison_round_turns_the_verdicts(
    a: list[dict[str, Any]], b: list[dict[str, Any]]
) -> None:
    there, back = compare(a, b), compare(b, a)
    opposite = {"broken": "fixed", "fixed": "broken", "slower": "faster", "faster": "slower"}
    for row, turned in zip(there.samples, back.samples, strict=True):
        assert opposite.get(row["verdict"], row["verdict"]) == turned["verdict"]


def test_the_text_tells_it_all() -> None:
    lines = str(compare(A, B)).splitlines()
    assert lines[:3] == [
        "A: inductor",
        "B: inductor",
        "8 samples count in both; p = 0.1, b = 0.1, variant report",
    ]
    assert "2 broken, 1 slower, 2 same, 1 faster, 1 fixed, 1 failing" in lines
    assert "Only A has, or counts, 1 samples: gone" in lines
    assert lines[-4:] == [
        " sample  B over A           95 %   A           B",
        "crashes         -                 ok  run_failed",
        "  wrong         -                 ok       wrong",
        " slower     0.500  0.493 … 0.507  ok          ok",
    ]


def test_plain_data_for_json() -> None:
    found = json.loads(json.dumps(compare(A, B).to_dict(), allow_nan=False))
    assert found["a"]["S"].keys() == found["b"]["ES"].keys()
    assert found["pairs"] == 4
    assert len(found["samples"]) == 8


def test_no_common_sample_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        compare([make_run("x", 1.0), BROKEN_EAGER], [make_run("y", 1.0)])
    assert str(error.value) == ("No sample counts in both run sets: A has 1 that count, B 1.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "time"}, "The basis is `time`, but it must be `speedup` or `latency`."),
        ({"threshold": 1.0}, "The threshold is 1.0, but it must be at least 0 and below 1."),
        ({"threshold": -0.1}, "The threshold is -0.1, but it must be at least 0 and below 1."),
    ],
)
def test_wrong_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ScoreError) as error:
        compare(A, B, **options)
    assert str(error.value) == message


def test_nothing_correct_in_both_gives_no_speedup() -> None:
    comparison = compare([make_run("x", 1.0)], [make_run("x", status="run_failed")])
    assert comparison.speedup is None
    assert "No sample is correct in both at t = 0, so that no speedup can be given." in str(
        comparison
    )
