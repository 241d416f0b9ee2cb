"""S(t) and ES(t): worked by hand, as a product and as a geometric mean, and at the edges."""

from __future__ import annotations

import math
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.schema import RUNS_SCHEMA, Status
from graphnet_datasets.scores import (
    TOLERANCES,
    VARIANTS,
    as_table,
    error_aware_speedup_score,
    score_of_components,
    speedup_score,
)

from .run_rows import BROKEN_EAGER, FOUR, make_run, run_rows

PENALTIES = st.floats(0, 3)
FAILURE_VALUES = st.floats(1e-3, 1)


def test_s_of_four_samples_worked_by_hand() -> None:
    scores = speedup_score([*FOUR, BROKEN_EAGER])
    row = scores.at(0)
    assert scores.num_samples == 4
    assert [row[name] for name in ("alpha", "beta", "lambda", "eta")] == pytest.approx(
        [1.0, 0.5, 0.5, 0.5], abs=1e-15
    )
    assert row["S"] == pytest.approx(0.5**0.025 * 0.1**0.5, rel=1e-14)
    # At t = -3 the slow sample is wrong too: (2 * 0.1 * 0.1 * 0.1) ** (1 / 4).
    assert scores.at(-3)["S"] == pytest.approx(0.002**0.25, rel=1e-14)
    assert scores.at(-6)["S"] == pytest.approx(0.1, rel=1e-14)
    counts = ("num_correct", "num_accuracy", "num_runtime", "num_compile")
    assert [scores.at(-3)[name] for name in counts] == [1, 1, 1, 1]


def test_s_is_not_defined_above_zero_in_the_report() -> None:
    scores = speedup_score(FOUR)
    for t in (1, 2, 3, 4):
        row = scores.at(t)
        assert row["S"] is row["S_low"] is row["S_family"] is row["S_family_high"] is None
        assert row["alpha"] == scores.at(0)["alpha"]


def test_es_of_four_samples_worked_by_hand() -> None:
    scores = error_aware_speedup_score(FOUR)
    penalty = 0.5**0.025
    assert [scores.at(t)["ES"] for t in (0, 1, 2, 3, 4)] == pytest.approx(
        [penalty * 0.1**0.5, penalty * 0.1**0.5, penalty * 0.1**0.25, penalty, penalty], rel=1e-14
    )
    assert [scores.at(t)["gamma"] for t in (0, 1, 2, 3)] == pytest.approx([0.1, 0.1, 0.1**0.5, 1])
    assert [scores.at(0)[f"pi_{c}"] for c in (1, 2, 3)] == [0.0, 0.5, 0.5]


def test_wrong_accuracy_is_forgiven_from_t_1() -> None:
    scores = error_aware_speedup_score([make_run("a", 4.0), make_run("b", 9.0, min_t=math.inf)])
    assert [scores.at(t)["ES"] for t in (0, 1)] == pytest.approx([0.4**0.5, 2.0])


def test_each_family_counts_once() -> None:
    scores = speedup_score(FOUR, p=0)
    # The family of the first two has the mean sqrt(2 * 0.5) = 1, the two others 0.1 each.
    assert scores.at(0)["S_family"] == pytest.approx(0.01 ** (1 / 3), rel=1e-14)
    assert scores.num_families == 3


def test_samples_without_a_family_count_as_one_each() -> None:
    scores = speedup_score([make_run("a", 2.0), make_run("b", 8.0, family="")])
    assert (scores.num_families, scores.num_without_family) == (2, 2)
    assert scores.at(0)["S_family"] == pytest.approx(4.0)


def test_the_vacuous_share_is_of_all_samples_in_n() -> None:
    scores = error_aware_speedup_score(FOUR, variant="upstream")
    assert [scores.at(t)["vacuous_share"] for t in (-2, -1, 0, 1, 4)] == [0, 0.25, 0.25, 0.5, 0.5]
    # In the report the tolerance of t = 0 decides at every positive t.
    assert error_aware_speedup_score(FOUR).at(4)["vacuous_share"] == 0.25
    assert speedup_score([make_run("a", 1.0)]).at(0)["vacuous_share"] is None


def test_failures_of_eager_are_listed_and_not_counted() -> None:
    lost = make_run("lost", status="harness_failed")
    scores = speedup_score([*FOUR, BROKEN_EAGER, lost])
    assert scores.at(0)["S"] == speedup_score(FOUR).at(0)["S"]
    assert [(row["sample_id"], row["status"]) for row in scores.excluded] == [
        ("broken", "baseline_failed"),
        ("lost", "harness_failed"),
    ]


def test_upstream_blames_the_compiler_for_a_failed_baseline() -> None:
    runs = [make_run("a", 4.0), BROKEN_EAGER, make_run("lost", status="harness_failed")]
    scores = error_aware_speedup_score(runs, variant="upstream")
    assert (scores.num_samples, scores.p) == (2, 0.0)
    assert [scores.at(t)["ES"] for t in (0, 2, 3)] == pytest.approx([0.4**0.5, 0.4**0.5, 2.0])
    assert [row["sample_id"] for row in scores.excluded] == ["lost"]


def test_upstream_extended_distinguishes_mismatches_and_never_forgives_eager() -> None:
    runs = [
        make_run("a", 16.0),
        make_run("b", status="output_mismatch"),
        make_run("c", status="run_failed"),
        make_run("d", status="compile_failed"),
        BROKEN_EAGER,
    ]
    scores = error_aware_speedup_score(runs, variant="upstream-extended")
    expected = [(16 * 0.1**failed) ** 0.2 for failed in (4, 4, 3, 2, 1)]
    assert [scores.at(t)["ES"] for t in (0, 1, 2, 3, 4)] == pytest.approx(expected)
    assert [scores.at(4)[f"pi_{c}"] for c in range(1, 6)] == [0, 0.25, 0.25, 0.25, 0.25]
    counts = [f"num_{name}" for name in ("accuracy", "mismatch", "runtime", "compile", "baseline")]
    assert [scores.at(4)[name] for name in counts] == [0, 1, 1, 1, 1]


def test_upstream_s_takes_the_tolerance_of_each_t() -> None:
    runs = [make_run("a", 4.0, min_t=0.5), make_run("b", 9.0, min_t=2.0)]
    scores = speedup_score(runs, variant="upstream")
    assert [scores.at(t)["lambda"] for t in (0, 1, 2, 4)] == [0, 0.5, 1, 1]
    assert [scores.at(t)["S"] for t in (0, 1, 4)] == pytest.approx([0.1, 0.4**0.5, 6])
    assert speedup_score(runs).at(1)["lambda"] == 0


def test_a_word_of_upstreams_overrides_the_status_in_its_variants_only() -> None:
    runs = [
        make_run("a", 4.0, upstream_status="runtime_fail"),
        make_run("b", 4.0, upstream_status="correct", min_t=None, status="output_mismatch"),
        make_run("c", 4.0, upstream_status="correct"),
        make_run("d", upstream_status="correct", status="run_failed"),
    ]
    upstream = speedup_score(runs, variant="upstream").at(-10)
    assert [upstream[name] for name in ("num_correct", "num_accuracy", "num_runtime")] == [1, 1, 2]
    report = speedup_score(runs).at(0)
    assert [report[name] for name in ("num_correct", "num_accuracy", "num_runtime")] == [2, 0, 2]


def test_a_nondeterministic_sample_is_judged_above_its_own_floor_and_marked() -> None:
    noisy = {"is_deterministic": False, "determinism_t": -1.0}
    runs = [make_run("a", 1.0, min_t=-1.5, **noisy), make_run("b", 1.0, min_t=-0.5, **noisy)]
    scores = speedup_score(runs)
    assert [scores.at(t)["num_correct"] for t in (-10, -1, 0)] == [1, 1, 2]
    assert scores.num_nondeterministic == 2
    assert "Nondeterministic under eager: 2 samples, judged above their own floor" in str(scores)
    assert speedup_score(runs, variant="upstream").at(-2)["num_correct"] == 0


@pytest.mark.parametrize("variant", ["report", "decidable"])
def test_zeros_are_correct_at_no_t(variant: str) -> None:
    """At t = 0 every tolerance of the report passes them."""
    nulls = [-0.5, -2.0, -5.4, -9.0, 0.0]
    fake = [make_run(str(t), 2000.0, min_t=t, null_t=t, family=str(t)) for t in nulls]
    for score, name in ((speedup_score, "S"), (error_aware_speedup_score, "ES")):
        scores = score(fake, variant=variant)
        assert all(value is None or value <= 0.1 + 1e-12 for value in scores[name][:11])
        assert set(scores["num_correct"]) == {0}
    assert speedup_score(fake, variant="upstream").at(0)["S"] == pytest.approx(2000.0)
    # Zeros beside noise: eager differs from itself by as much, so that nothing is exact of it.
    noise = {"is_deterministic": False, "determinism_t": 0.5}
    scores = speedup_score([make_run("honest", 1.5), *(run | noise for run in fake)])
    assert scores.num_samples == 1
    assert "since eager differs from itself by as much as from zeros: -0.5, -2.0" in str(scores)


def test_bit_equal_outputs_are_correct_where_zeros_pass() -> None:
    assert speedup_score([make_run("a", 2.0, min_t=-math.inf, null_t=-math.inf)]).at(-10)[
        "S"
    ] == pytest.approx(2.0)


def test_impossible_runs_are_out_of_n_and_listed() -> None:
    warning = "impossibly_fast: the candidate took 1e-06 ms for work that takes at least 1 ms."
    runs = [make_run("a", 2.0), make_run("b", 1e6, warnings=["noisy: x", warning])]
    for variant in VARIANTS:
        scores = speedup_score(runs, variant=variant)
        assert scores.at(0)["S"] == pytest.approx(2.0)
        (row,) = scores.excluded
        assert (row["sample_id"], row["reason"]) == ("b", "impossibly_fast")
        assert row["error_message"] == warning
    assert "Not in N: 1, since they were faster than the device can be (impossibly_fast): b" in str(
        speedup_score(runs)
    )
    with pytest.raises(ScoreError, match="There is nothing to score"):
        speedup_score(runs[1:])


def test_warnings_are_counted_beside_the_score() -> None:
    runs = [
        make_run("a", 2.0, warnings=["less_accurate_than_eager: 1", "less_accurate_than_eager: 2"]),
        make_run("b", 2.0, warnings=["noisy: the machine was busy", "left 2 processes running"]),
        make_run("c", 2.0, warnings=[]),
    ]
    scores = speedup_score(runs)
    assert scores.warnings == {"less_accurate_than_eager": 1, "noisy": 1, "other": 1}
    assert scores.to_dict()["warnings"] == scores.warnings
    line = "Warnings: 1 less_accurate_than_eager, 1 noisy, 1 other"
    assert line in str(scores)
    assert line in scores._repr_html_()


def test_a_run_that_is_not_ok_has_no_speedup() -> None:
    """Files from before gave one to outputs of a wrong shape."""
    runs = [make_run("a", 4.0), make_run("b", 9.0, status="output_mismatch", speedup_low=8.0)]
    table = as_table(runs)
    assert table["speedup"].to_pylist() == [4.0, None]
    assert table["speedup_low"].to_pylist() == [None, None]
    logged = make_run("c", 9.0, status="run_failed", upstream_status="correct")
    assert speedup_score([logged], variant="upstream").at(0)["S"] == pytest.approx(9.0)


ODD = make_run("odd", 8.0, min_t=-2.0, null_t=-1.0, eager_t=-1.5)
"""Decidable at t in [-1.5, -1) only, which holds no whole t."""


def test_undecidable_samples_are_reported_and_can_be_excluded() -> None:
    good = make_run("good", 2.0, min_t=-8.0, null_t=-0.5, eager_t=-7.5)
    failed = make_run("failed", status="run_failed")
    scores = speedup_score([good, ODD, failed])
    at = {t: scores.at(t)["undecidable_share"] for t in (-9, -8, -7, -2, -1, 0)}
    assert at == pytest.approx({-9: 2 / 3, -8: 2 / 3, -7: 1 / 3, -2: 1 / 3, -1: 1 / 3, 0: 2 / 3})
    assert scores.at(-3)["S"] == pytest.approx((2 * 0.1 * 0.1) ** (1 / 3))
    left = speedup_score([good, ODD, failed], variant="decidable")
    assert left["num_samples"][:11] == [1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 1]
    assert left.at(-3)["S"] == pytest.approx((2 * 0.1) ** 0.5)
    assert left.at(-9)["S"] == pytest.approx(0.1)
    assert left.at(-3)["lambda"] == 0.5
    assert "samples" in str(left)


def test_a_t_that_decides_nothing_has_no_score() -> None:
    row = speedup_score([ODD], variant="decidable").at(-3)
    assert row["S"] is row["S_family"] is None
    assert row["num_samples"] == 0


def test_outputs_that_are_not_finite_are_vacuous_at_every_t() -> None:
    nan = make_run("nan", 3.0, min_t=-math.inf, null_t=math.inf)
    nan["outputs"] = [{"dtype": "float32", "null_t": math.inf}]
    exact = make_run("int", 3.0, min_t=-math.inf, null_t=math.inf)
    exact["outputs"] = [
        {"dtype": "int64", "null_t": math.inf},
        {"dtype": "float32", "null_t": -1.0},
    ]
    assert speedup_score([nan]).at(-10)["vacuous_share"] == 1
    assert speedup_score([exact]).at(0)["vacuous_share"] == 0
    assert speedup_score([nan, exact]).at(-10)["vacuous_share"] == 0.5
    assert speedup_score([nan, exact], variant="decidable")["num_samples"] == [1] * 15
    bare = make_run("bare", 3.0, min_t=-math.inf, null_t=math.inf)
    assert speedup_score([bare]).at(0)["vacuous_share"] == 1


def rectified(row: dict[str, Any], t: int, p: float, b: float, penalised: bool) -> float:
    """Return what one sample counts for, straight from the report's sample-level definition."""
    min_t, null_t = row["min_t"], row["null_t"]
    is_right = row["status"] == "ok" and min_t <= min(t, 0)
    if is_right and (null_t is None or min_t < null_t - 1e-8 or min_t == -math.inf):
        return row["speedup"] if row["speedup"] >= 1 else row["speedup"] ** (p + 1)
    return b if penalised else 1.0


@given(run_rows(statuses=(Status.OK, Status.RUN_FAILED, Status.COMPILE_FAILED)), PENALTIES)
def test_es_is_the_geometric_mean_over_samples(rows: list[dict[str, Any]], p: float) -> None:
    for row in rows:
        row["is_deterministic"] = True
    scores = error_aware_speedup_score(rows, p, 0.2, has_intervals=False)
    codes = {"ok": 1, "run_failed": 2, "compile_failed": 3}
    for t in TOLERANCES:
        values = [rectified(row, t, p, 0.2, t < codes[row["status"]]) for row in rows]
        assert scores.at(t)["ES"] == pytest.approx(math.prod(values) ** (1 / len(rows)), rel=1e-9)


@pytest.mark.slow
@given(run_rows(), PENALTIES, FAILURE_VALUES, st.sampled_from(sorted(VARIANTS)))
def test_both_forms_agree(rows: list[dict[str, Any]], p: float, b: float, variant: str) -> None:
    s = speedup_score(rows, p, b, variant, has_intervals=False)
    es = error_aware_speedup_score(rows, p, b, variant, has_intervals=False)
    for row, es_row in zip(s, es, strict=True):
        if variant.startswith("upstream") and row["t"] > 1:
            continue  # there S takes the tolerance of t, and ES that of t = 1
        parts = [row[name] for name in ("alpha", "beta", "lambda", "eta")]
        assert parts == [es_row[name] for name in ("alpha", "beta", "lambda", "eta")]
        product = score_of_components(*parts, gamma=es_row["gamma"], p=p)
        assert es_row["ES"] == pytest.approx(product, rel=1e-12)
        if row["S"] is not None:
            assert row["S"] == pytest.approx(score_of_components(*parts, gamma=b, p=p), rel=1e-12)
        if row["t"] <= 0:
            assert row["S"] == es_row["ES"]


@given(run_rows(), st.randoms())
def test_the_order_of_the_records_does_not_matter(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    first, second = (
        error_aware_speedup_score(some, has_intervals=False) for some in (rows, shuffled)
    )
    for name in first.columns:
        if first[name][0] is not None:
            np.testing.assert_allclose(first[name], second[name], rtol=1e-12)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_gamma_has_no_effect_without_failures(variant: str) -> None:
    scores = error_aware_speedup_score([make_run("a", 3.0, min_t=-math.inf)], variant=variant)
    assert scores["ES"] == pytest.approx([3.0] * len(scores["t"]))
    assert scores["pi_1"] == [0.0] * len(scores["t"])


def test_nothing_correct_scores_b() -> None:
    assert speedup_score([make_run("a", status="run_failed")], b=0.3).at(0)["S"] == pytest.approx(
        0.3
    )


def test_records_come_as_dataset_table_or_rows(tmp_path: Any) -> None:
    table = pa.Table.from_pylist(FOUR, schema=RUNS_SCHEMA)
    expected = speedup_score(FOUR).to_dict()
    assert speedup_score(table).to_dict() == expected
    dataset = datasets.Dataset(table)
    assert speedup_score(dataset).to_dict() == expected
    dataset.to_parquet(tmp_path / "runs.parquet")
    assert speedup_score(tmp_path / "runs.parquet").to_dict() == expected
    assert speedup_score(str(tmp_path)).to_dict() == expected


def test_a_selected_dataset_is_scored_by_its_selection() -> None:
    dataset = datasets.Dataset(pa.Table.from_pylist(FOUR, schema=RUNS_SCHEMA))
    assert speedup_score(dataset.select([0])).at(0)["S"] == pytest.approx(2.0)


@pytest.mark.parametrize("p", [-0.1, math.nan, math.inf])
def test_a_negative_penalty_is_refused(p: float) -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score(FOUR, p=p)
    assert str(error.value) == (
        f"The penalty of slow samples p is {p}, but it must be a finite number that is not "
        "negative: a correct sample with speedup s < 1 counts as s^(p + 1)."
    )


@pytest.mark.parametrize("b", [0.0, -1.0, 1.5, math.nan])
def test_a_value_of_failures_outside_its_range_is_refused(b: float) -> None:
    with pytest.raises(ScoreError) as error:
        error_aware_speedup_score(FOUR, b=b)
    assert str(error.value) == (
        f"The value of a failed sample b is {b}, but it must be above 0 and at most 1: a failed "
        "sample counts as a speedup of b."
    )


def test_b_may_be_1() -> None:
    assert speedup_score([make_run("a", status="run_failed")], b=1).at(0)["S"] == 1.0


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score(FOUR, variant="paper")
    assert str(error.value) == (
        "There is no variant `paper` of the scores. Choose one of `report`, `decidable`, "
        "`upstream`, `upstream-extended`."
    )


def test_no_records_at_all_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score(pa.Table.from_pylist([], schema=RUNS_SCHEMA))
    assert str(error.value) == "There is nothing to score: there are no run records."


def test_records_that_all_lie_outside_n_are_refused() -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score([BROKEN_EAGER])
    assert str(error.value) == (
        "There is nothing to score: each of the 1 runs ended `baseline_failed`, which is not the "
        "compiler's fault. Read their errors in the columns `error_type` and `error_message`."
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"speedup": None}, "ended `ok`, but its `speedup` is None"),
        ({"speedup": 0.0}, "ended `ok`, but its `speedup` is 0.0"),
        ({"speedup": math.inf}, "ended `ok`, but its `speedup` is inf"),
        ({"min_t": None}, "ended `ok`, but its `min_t` is None"),
    ],
)
def test_a_record_that_ended_well_must_hold_its_numbers(columns: Any, message: str) -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score([make_run("x", 2.0) | columns])
    assert str(error.value) == (
        f"The run of `x` {message}. Run the sample again, or leave the record out."
    )


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score([*FOUR, make_run("odd", status="passed")])
    assert str(error.value) == (
        "The run of `odd` has the status `passed`, but expected one of `ok`, `output_mismatch`, "
        "`run_failed`, `compile_failed`, `baseline_failed`, `harness_failed`."
    )


def test_an_unknown_word_of_upstreams_is_refused_where_it_counts() -> None:
    runs = [make_run("odd", 1.0, upstream_status="perfect")]
    assert speedup_score(runs).at(0)["S"] == 1.0
    with pytest.raises(ScoreError, match=r"^The run of `odd` has the upstream_status `perfect`"):
        speedup_score(runs, variant="upstream")
