"""Sentences and tables about summaries of arms and single runs."""

from __future__ import annotations

import math

import pytest

from graphnet_datasets.scores import Outcome, summarise, summarise_arms
from graphnet_datasets.scores.intervals import Mean
from graphnet_datasets.scores.summary_text import (
    arms_table,
    closing_lines,
    conclusions,
    describe_run,
    mean_text,
    short_names,
    with_short_names,
)

from .run_rows import BROKEN_EAGER, make_run
from .test_summary import arm

FAST = [1.9, 2.1, 2.0, 2.2, 1.8, 2.05]
SLOW = [0.49, 0.51, 0.5, 0.52, 0.48, 0.5]
EVEN = [0.7, 1.4, 1.1, 0.9, 1.3, 0.8]


def output(min_t: float, **columns: object) -> dict[str, object]:
    return {"min_t": min_t, "max_abs_error": 0.031, "is_nonfinite_mismatch": False} | columns


@pytest.mark.parametrize(
    ("columns", "outcome", "line"),
    [
        (
            {"speedup_low": 1.19, "speedup_high": 1.29},
            Outcome.RIGHT,
            "right   1.24x (1.19 to 1.29)",
        ),
        ({"is_candidate_launch_bound": True}, Outcome.RIGHT, "right   1.24x   launch bound"),
        (
            {"min_t": 1.0, "outputs": [output(-math.inf), output(1.0)]},
            Outcome.WRONG,
            "WRONG   at t = -3 (largest error 0.03 in output 1)",
        ),
        (
            {"min_t": -3.5, "null_t": -3.6, "outputs": [output(-3.5, null_t=-3.6)]},
            Outcome.WRONG,
            "WRONG   at t = -3 (largest error 0.03 in output 0, as far from eager as zeros)",
        ),
        (
            {"min_t": math.inf, "outputs": [output(math.inf, is_nonfinite_mismatch=True)]},
            Outcome.WRONG,
            "WRONG   at t = -3 (NaN or infinity in output 0 unlike eager, or missing)",
        ),
        (
            {"status": "output_mismatch", "speedup": None, "error_message": "Output 0 is short."},
            Outcome.WRONG,
            "WRONG   Output 0 is short.",
        ),
        (
            {
                "status": "compile_failed", "speedup": None, "error_type": "torch.LoweringError",
                "error_message": "no kernel\nfor this",
            },
            Outcome.FAILED,
            "failed  while compiling: LoweringError: no kernel for this",
        ),
        (
            {"status": "run_failed", "speedup": None, "reason": "timeout"},
            Outcome.FAILED,
            "failed  while running: timeout",
        ),
        (
            {"undecidable_reason": "Zeros agree."},
            Outcome.UNDECIDABLE,
            "undecidable  Zeros agree.",
        ),
        (
            {"status": "baseline_failed", "speedup": None, "error_type": "MemoryError"},
            Outcome.NOT_COUNTED,
            "not counted  eager failed: MemoryError",
        ),
    ],
)  # fmt: skip
def test_a_line_about_a_run(columns: dict, outcome: Outcome, line: str) -> None:
    assert describe_run(make_run("a", 1.24) | columns) == (outcome, line)


def test_a_long_message_is_cut_and_its_control_characters_are_escaped() -> None:
    run = make_run("a", status="run_failed", error_message="\x1b[31m" + "x" * 500)
    line = describe_run(run)[1]
    assert "\x1b" not in line
    assert line.endswith("x…")
    assert len(line) < 200


def test_a_row_per_arm_the_best_first() -> None:
    arms = {
        "slow": arm(SLOW, "slow"),
        "fast": [*arm(FAST, "fast"), BROKEN_EAGER | {"compiler": "fast"}],
    }
    lines = arms_table(summarise_arms(arms)).splitlines()
    assert lines[0].split()[:6] == ["arm", "graphs", "right", "wrong", "failed", "undecidable"]
    assert [line.split()[:4] for line in lines[1:]] == [
        ["fast", "7", "6", "0"],
        ["slow", "6", "6", "0"],
    ]
    assert " not counted " in lines[0]
    assert "not counted" not in arms_table([summarise(arm(SLOW))])


def test_conclusions_distinguish_arms() -> None:
    arms = {"fast": arm(FAST, "fast"), "slow": arm(SLOW, "slow"), "even": arm(EVEN, "even")}
    lines = conclusions(summarise_arms(arms))
    assert lines[0] == "Faster than eager (interval above 1): fast."
    assert lines[1] == "Slower than eager (interval below 1): slow."
    assert lines[2].startswith("even: not distinguishable from eager with 6 families; ")
    assert [line.partition(" (")[0] for line in lines[3:]] == [
        "fast is faster than even",
        "fast is faster than slow",
        "even is faster than slow",
    ]


def test_conclusions_explain_why_arms_are_not_distinguishable() -> None:
    arms = {
        "a": arm(EVEN, "a"),
        "b": arm(EVEN[::-1], "b"),
        "few": arm([2.0, 3.0], "few"),
        "gpu": arm(FAST, "gpu", "cuda:0"),
        "eager": arm([1.0] * 6, "eager"),
    }
    text = "\n".join(conclusions(summarise_arms(arms)))
    assert "few: no interval: 2 model families are too few (5 are needed). Add graphs," in text
    assert "since the interval of their ratio contains 1: a and b (1.00x (" in text
    assert "Fewer than 5 common families, so no comparison: few and a; few and b." in text
    assert "Not compared: 3 pairs of arms without a common right graph or device." in text
    assert "eager is" not in text


def test_many_arms_take_few_sentences() -> None:
    arms = {f"c{index}": arm(EVEN, f"c{index}") for index in range(12)}
    lines = conclusions(summarise_arms(arms))
    assert len(lines) == 12 + 2
    assert "; 60 more pairs." in lines[-2]


@pytest.mark.parametrize(
    ("speedups", "verdict"),
    [
        (FAST, "Speedup: 2.00x (1.84 to 2.15), faster than eager."),
        (SLOW, "Speedup: 0.50x (0.48 to 0.51), slower than eager."),
        ([2.0, 2.0], "Speedup: 2.00x, no interval: 2 model families are too few (5 are needed)"),
    ],
)
def test_the_closing_lines(speedups: list[float], verdict: str) -> None:
    first, second, third = closing_lines(summarise(arm(speedups), "mine"))
    assert first.startswith(f"mine: {len(speedups)} of {len(speedups)} right. S(-3) = ")
    assert second.startswith(verdict)
    assert third.startswith("Slowest: s")


def test_wrong_and_failed_graphs_are_counted_first() -> None:
    rows = [*arm(FAST), make_run("w", 9.0, min_t=3.0), make_run("f", status="compile_failed")]
    first, second, _ = closing_lines(summarise(rows, "mine"))
    assert first.startswith("mine: 6 of 8 right, 1 wrong, 1 failed. S(-3) = 0.9")
    assert first.endswith(", where a wrong or failed graph counts as 0.1x.")
    assert second.startswith("The right ones alone: 2.00x (1.84 to 2.15), faster than eager.")


def test_nothing_right_is_one_line() -> None:
    (line,) = closing_lines(summarise([make_run("w", 9.0, min_t=3.0)], "mine"))
    assert line.startswith("mine: 0 of 1 right, 1 wrong. S(-3) = 0.10, where")


def test_long_names_are_numbered_and_explained() -> None:
    names = ["inductor (freezing=true, mode=default)", "inductor (freezing=false, mode=default)"]
    assert list(short_names([*names, "tvm"]).values()) == ["inductor [1]", "inductor [2]", "tvm"]
    renamed, lines = with_short_names([summarise(arm(FAST), name) for name in names])
    assert [summary.name for summary in renamed] == ["inductor [1]", "inductor [2]"]
    assert lines == [f"  inductor [1]: {names[0]}", f"  inductor [2]: {names[1]}"]


def test_an_interval_next_to_one_shows_that_it_does_not_hold_it() -> None:
    assert mean_text(Mean(1.08, 1.0015, 1.2, 9)) == "1.08x (1.0015 to 1.2000)"
    assert mean_text(Mean(1.08, 0.999, 1.2, 9)) == "1.08x (1.00 to 1.20)"
