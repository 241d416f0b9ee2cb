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
        "undecidable": 0,
    }
    assert [row["sample_id"] for row in comparison.regressions] == ["crashes", "wrong", "slower"]
    assert comparison.only_in_a == ("gone",)
    assert comparison.only_in_b == ("broken eager", "new")


def test_the_speedup_is_over_samples_that_are_correct_in_both() -> None:
    comparison = compare(A, B)
    assert comparison.num_pairs == 4
    assert comparison.speedup == pytest.approx((0.5 * 2 * 0.8 * 0.97) ** 0.25)
    assert comparison.family_speedup == pytest.approx((1 * 0.8 * 0.97) ** (1 / 3))
    assert comparison.low is comparison.high is comparison.family_low is None  # three families


def test_the_interval_is_over_families_and_holds_the_timing() -> None:
    def runs(speedups: list[float], width: float) -> list[dict[str, Any]]:
        return [timed(f"s{i}", s, width, family=f"f{i}") for i, s in enumerate(speedups)]

    comparison = compare(runs([1.0] * 6, 0.03), runs([1.5] * 6, 0.04))
    # Equal ratios: what is left is the timing of six samples, each 0.05 wide.
    assert comparison.speedup == pytest.approx(1.5)
    assert comparison.low == pytest.approx(1.5 * math.exp(-0.05 / math.sqrt(6)))
    assert comparison.family_high == pytest.approx(1.5 * math.exp(0.05 / math.sqrt(6)))
    spread = compare(runs([1.0] * 6, 0.03), runs([1, 1.2, 1.5, 2, 2.5, 3], 0.04))
    assert spread.low is not None
    assert spread.high is not None
    assert spread.speedup is not None
    assert spread.low < spread.speedup / 1.2 < spread.speedup * 1.2 < spread.high
    data = spread.to_dict()
    assert data["family_speedup_low"] == spread.family_low
    assert compare(runs([1.0] * 4, 0.1), runs([2.0] * 4, 0.1)).low is None


def zeros(null_t: float, **columns: Any) -> dict[str, Any]:
    """Return the run of a compiler whose outputs are zeros, on a sample with this `null_t`."""
    columns = {"candidate_latency_ms": [0.001]} | columns
    return make_run(f"s{null_t}", 2000.0, min_t=null_t, null_t=null_t, **columns)


NULLS = [-0.5, -2.0, -3.0, -4.0, -7.5, 0.0]


@pytest.mark.parametrize("tolerance", [-10, -4, -3, -1, 0])
@pytest.mark.parametrize("basis", ["speedup", "latency"])
def test_zeros_are_never_an_improvement(tolerance: int, basis: Any) -> None:
    honest = [
        make_run(f"s{t}", 1.0, min_t=t - 3, null_t=t, candidate_latency_ms=[2.0]) for t in NULLS
    ]
    fake = [zeros(t) for t in NULLS]
    comparison = compare(honest, fake, basis=basis, tolerance=tolerance)
    assert comparison.speedup is None
    assert comparison.counts["faster"] == comparison.counts["fixed"] == 0
    if tolerance >= -3:
        assert comparison.counts["broken"] == len(NULLS)
    assert all(s_b <= 0.1 + 1e-12 for s_b in comparison.s[1]["S"][:11])
    # Nor where the other compiler fails, nor against themselves.
    for other in (fake, [make_run(f"s{t}", status="compile_failed") for t in NULLS]):
        counts = compare(other, fake, basis=basis, tolerance=tolerance).counts
        assert counts["failing"] == len(NULLS)


def test_zeros_are_undecidable_if_eager_returns_zeros() -> None:
    a, b = zeros(-math.inf), zeros(-math.inf)
    assert compare([a | {"speedup": 1.0}], [b]).counts["undecidable"] == 1
    crashed = make_run("s-inf", status="run_failed")
    assert compare([a], [crashed]).counts["broken"] == 1
    assert compare([crashed], [b]).counts["undecidable"] == 1


def test_vacuous_samples_are_decided_below_the_tolerance() -> None:
    """A softmax over 250,000 classes: zeros pass at t = -5, honest outputs at -9."""
    a, b = (make_run("x", s, min_t=-9.0, null_t=-5.0, eager_t=-9.5) for s in (1.0, 2.0))
    assert compare([a], [b]).counts["faster"] == 1
    assert compare([a], [b | {"min_t": -4.0}]).counts["broken"] == 1
    assert compare([a], [b | {"eager_t": -4.5}]).counts["undecidable"] == 1


@pytest.mark.parametrize(
    ("eager_t", "verdict"), [(None, "broken"), (-6.0, "broken"), (-2.5, "undecidable")]
)
def test_samples_that_eager_fails_are_undecided(eager_t: float | None, verdict: str) -> None:
    a, b = (make_run("x", 1.0, min_t=t, null_t=0.0, eager_t=eager_t) for t in (-3.5, -2.0))
    (row,) = compare([a], [b]).samples
    assert row["verdict"] == verdict
    assert row["speedup"] is None


@pytest.mark.parametrize("tolerance", [1, -11])
def test_a_tolerance_that_decides_nothing_is_refused(tolerance: int) -> None:
    with pytest.raises(ScoreError) as error:
        compare(A, B, tolerance=tolerance)
    assert str(error.value) == (
        f"The tolerance is {tolerance}, but it must be an integer from -10 to 0: greater "
        "tolerances forgive failures."
    )


def test_impossible_runs_and_lost_accuracy_are_reported() -> None:
    a = [make_run("x", 1.0), make_run("y", 1.0), make_run("z", 1.0)]
    b = [
        make_run("x", 90.0, warnings=["impossibly_fast: the candidate took 1 us for 1 ms of work"]),
        make_run("y", 1.0, warnings=["less_accurate_than_eager: output 0 is 3 from float64"]),
        make_run("z", 1.0),
    ]
    comparison = compare(a, b)
    assert [row["sample_id"] for row in comparison.samples] == ["y", "z"]
    assert comparison.only_in_a == ("x",)
    assert comparison.less_accurate == ("y",)
    text = str(comparison)
    assert "Less accurate than eager in B alone: 1 sample: y" in text
    assert "B: Warnings: 1 less_accurate_than_eager" in text


def test_every_differing_condition_is_reported() -> None:
    def run(version: str, governor: str, budget: float, **columns: Any) -> dict[str, Any]:
        environment = json.dumps({"cpu": {"governor": governor}, "packages": {"torch": version}})
        return make_run(
            "x", 1.0, compiler_version=version, environment=environment,
            settings=json.dumps({"timing": {"budget_s": budget}, "seed": 0}), **columns,
        )  # fmt: skip

    a = run("2.12", "powersave", 1.0, launch_mode="stream", baseline="eager", device="cuda:0")
    b = run("2.13", "performance", 2.0, launch_mode="cuda_graph", baseline="static", device="cpu")
    assert compare([a], [b]).conditions == {
        "compiler_version": ("2.12", "2.13"),
        "baseline": ("eager", "static"),
        "device": ("cuda", "cpu"),
        "launch_mode": ("stream", "cuda_graph"),
        "environment cpu.governor": ("powersave", "performance"),
        "environment packages.torch": ("2.12", "2.13"),
        "settings timing.budget_s": ("1.0", "2.0"),
    }
    text = str(compare([a], [b]))
    assert "  environment cpu.governor: A powersave; B performance" in text.splitlines()
    assert compare([a], [a]).conditions == {}
    assert "different conditions" not in str(compare([a], [a]))


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


@pytest.mark.slow
@given(run_rows(statuses=(Status.OK, Status.RUN_FAILED)))
def test_a_run_set_against_itself_has_no_regressions(rows: list[dict[str, Any]]) -> None:
    comparison = compare(rows, rows)
    assert comparison.regressions == []
    assert comparison.speedup in (None, pytest.approx(1.0))
    assert {row["verdict"] for row in comparison.samples} <= {
        "same",
        "failing",
        "undecidable",
    }


@pytest.mark.slow
@given(run_rows(statuses=(Status.OK, Status.RUN_FAILED)), run_rows(statuses=(Status.OK,)))
def test_turning_the_comparison_round_turns_the_verdicts(
    a: list[dict[str, Any]], b: list[dict[str, Any]]
) -> None:
    there, back = compare(a, b), compare(b, a)
    opposite = {"broken": "fixed", "fixed": "broken", "slower": "faster", "faster": "slower"}
    for row, turned in zip(there.samples, back.samples, strict=True):
        if "undecidable" in (row["verdict"], turned["verdict"]):
            # A crash is told where the other side ended, whatever its outputs are worth.
            assert {row["verdict"], turned["verdict"]} <= {"undecidable", "broken"}
            continue
        assert opposite.get(row["verdict"], row["verdict"]) == turned["verdict"]


def test_the_text_lists_counts_and_regressions() -> None:
    lines = str(compare(A, B)).splitlines()
    assert lines[:3] == [
        "A: inductor",
        "B: inductor",
        "8 samples in both; p = 0.1, b = 0.1, variant report",
    ]
    assert "2 broken, 1 slower, 2 same, 1 faster, 1 fixed, 1 failing, 0 undecidable" in lines
    assert "Only A has, or counts, 1 sample: gone" in lines
    assert lines[-4:] == [
        " sample  B over A           95 %   A           B",
        "crashes         -                 ok  run_failed",
        "  wrong         -                 ok       wrong",
        " slower     0.500  0.493 … 0.507  ok          ok",
    ]


def test_plain_data_for_json() -> None:
    data = json.loads(json.dumps(compare(A, B).to_dict(), allow_nan=False))
    assert data["a"]["S"].keys() == data["b"]["ES"].keys()
    assert data["pairs"] == 4
    assert len(data["samples"]) == 8


def test_no_common_sample_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        compare([make_run("x", 1.0), BROKEN_EAGER], [make_run("y", 1.0)])
    assert str(error.value) == (
        "No sample counts in both run sets: 1 count in A, 1 in B. Compare runs of the same samples."
    )


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


def test_without_a_sample_correct_in_both_there_is_no_speedup() -> None:
    comparison = compare([make_run("x", 1.0)], [make_run("x", status="run_failed")])
    assert comparison.speedup is None
    assert "No sample is correct in both at t = -3, so there is no speedup." in str(comparison)
