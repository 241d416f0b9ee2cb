"""Records beside the verdicts that rows of `compiler_bugs` expect."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.schema import ExpectedVerdict
from graphnet_datasets.scores import (
    BugOutcome,
    Expectation,
    compare_with_expected,
    describe_expectations,
    verdict_of,
)


def expected(compiler: str, version: str, verdict: str, num_variations: int = 0) -> dict[str, Any]:
    return {
        "compiler": compiler,
        "options": '{"opt_level": 3}',
        "num_variations": num_variations,
        "version": version,
        "verdict": verdict,
    }


ROW = {
    "id": "tvm/relu",
    "expected": [
        expected("tvm", "0.27", "wrong"),
        expected("inductor", "2.13", "right"),
        expected("inductor", "2.13", "wrong", num_variations=3),
    ],
}


def record(compiler: str = "tvm", **columns: Any) -> dict[str, Any]:
    return {
        "sample_id": "tvm/relu",
        "compiler": compiler,
        "compiler_options": "{}",
        "settings": "{}",
        "compiler_version": "0.28",
        "status": "ok",
        "reason": "",
        "min_t": None,
        **columns,
    }


@pytest.mark.parametrize(
    ("status", "min_t", "verdict"),
    [
        ("ok", -3.0, ExpectedVerdict.RIGHT),
        ("ok", -2.9, ExpectedVerdict.WRONG),
        ("ok", float("inf"), ExpectedVerdict.WRONG),
        ("ok", None, None),
        ("output_mismatch", None, ExpectedVerdict.WRONG),
        ("compile_failed", None, ExpectedVerdict.FAILS),
        ("run_failed", None, ExpectedVerdict.FAILS),
        ("baseline_failed", None, None),
        ("harness_failed", None, None),
    ],
)
def test_verdict_of_each_status(status: str, min_t: float | None, verdict: Any) -> None:
    assert verdict_of(record(status=status, min_t=min_t)) == verdict


def test_a_suspicion_about_times_is_no_verdict() -> None:
    assert verdict_of(record(status="run_failed", reason="tampering")) is None


def test_a_graph_that_takes_no_other_numbers_has_no_verdict_on_them() -> None:
    fixed = record(min_t=-6.0, varied_verdict="unsupported")
    assert verdict_of(fixed) is None
    assert verdict_of(fixed | {"varied_verdict": "ok"}) == ExpectedVerdict.RIGHT


def test_a_repaired_compiler_and_a_broken_one_differ_from_the_expectation() -> None:
    repaired, broken = compare_with_expected(
        [ROW], [record(min_t=-6.0), record("inductor", status="run_failed")]
    )
    assert (repaired.expected, repaired.actual, repaired.is_met) == ("wrong", "right", False)
    assert (broken.expected, broken.actual, broken.is_met) == ("right", "fails", False)
    assert (repaired.version, repaired.compiler_version) == ("0.27", "0.28")


def test_calls_with_other_sizes_and_numbers_have_a_verdict_of_their_own() -> None:
    varied = record("inductor", settings='{"num_variations": 3}', status="output_mismatch")
    (expectation,) = compare_with_expected([ROW], [varied])
    assert (expectation.expected, expectation.is_met) == ("wrong", True)


RIGHT, WRONG, FAILS = ExpectedVerdict.RIGHT, ExpectedVerdict.WRONG, ExpectedVerdict.FAILS


@pytest.mark.parametrize(
    ("expected", "actual", "outcome"),
    [
        (WRONG, WRONG, BugOutcome.REPRODUCED),
        (FAILS, FAILS, BugOutcome.REPRODUCED),
        (WRONG, RIGHT, BugOutcome.GONE),
        (FAILS, RIGHT, BugOutcome.GONE),
        (WRONG, FAILS, BugOutcome.CHANGED),
        (FAILS, WRONG, BugOutcome.CHANGED),
        (RIGHT, RIGHT, BugOutcome.RIGHT),
        (RIGHT, WRONG, BugOutcome.BROKEN),
        (RIGHT, FAILS, BugOutcome.BROKEN),
        (WRONG, None, BugOutcome.UNDECIDED),
        (RIGHT, None, BugOutcome.UNDECIDED),
    ],
)
def test_outcome_of_each_pair_of_verdicts(
    expected: ExpectedVerdict, actual: ExpectedVerdict | None, outcome: BugOutcome
) -> None:
    assert Expectation("a", "tvm", expected, actual, "1", "2").outcome == outcome


def test_the_description_lists_every_difference_per_compiler() -> None:
    pairs = [(WRONG, WRONG), (WRONG, RIGHT), (RIGHT, RIGHT), (RIGHT, FAILS), (FAILS, WRONG)]
    expectations = [
        Expectation(f"bug-{index}", "tvm", expected, actual, "0.27", "0.28")
        for index, (expected, actual) in enumerate([*pairs, (RIGHT, None)])
    ]
    varied = Expectation("bug-9", "inductor", WRONG, WRONG, "2.13", "2.13", num_variations=3)
    assert describe_expectations([*expectations, varied]).splitlines() == [
        "tvm 0.28, compared with tvm 0.27: 2 of 6 verdicts are as expected.",
        "  1 known bug still reproduces: bug-0",
        "  1 known bug is gone:",
        "    bug-1: right, expected wrong",
        "  1 known bug shows in another way:",
        "    bug-4: wrong, expected fails",
        "  1 right graph is still right.",
        "  1 right graph is no longer right:",
        "    bug-3: fails, expected right",
        "  1 graph has no verdict:",
        "    bug-5: no verdict, expected right",
        "inductor 2.13 with `--vary 3`: 1 of 1 verdict is as expected.",
        "  1 known bug still reproduces: bug-9",
    ]


def test_other_options_compilers_and_tables_are_not_compared() -> None:
    records = [
        record(compiler_options='{"opt_level": 1}', min_t=1.0),
        record("iree", min_t=1.0),
        record(sample_id="timm/resnet18", min_t=1.0),
    ]
    assert compare_with_expected([ROW, {"id": "timm/resnet18"}], records) == []
