"""The table of scores: rows, columns, JSON, text and HTML."""

from __future__ import annotations

import json

import pytest

from graphnet_datasets.scores import error_aware_speedup_score, speedup_score

from .run_rows import BROKEN_EAGER, FOUR, make_run


def test_rows_and_columns() -> None:
    scores = speedup_score(FOUR)
    assert len(scores) == 15
    assert scores["t"] == list(range(-10, 5))
    assert [row["S"] for row in scores] == scores["S"]
    assert scores.at(-3) == list(scores)[7]


def test_a_row_or_column_that_is_not_there_is_a_key_error() -> None:
    scores = speedup_score(FOUR)
    with pytest.raises(KeyError, match=r"There is no score at t = 5\. Use an integer"):
        scores.at(5)
    with pytest.raises(KeyError, match=r"There is no column `ES`\. The columns are t, S, S_low"):
        scores["ES"]


def test_a_column_is_a_copy() -> None:
    scores = speedup_score(FOUR)
    scores["S"].clear()
    assert len(scores["S"]) == 15


def test_plain_data_for_json() -> None:
    scores = speedup_score([*FOUR, BROKEN_EAGER], p=0)
    data = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert list(data["S"]) == [str(t) for t in range(-10, 5)]
    assert data["S"]["4"] is None
    assert data["S"]["0"] == pytest.approx(0.1**0.5)
    assert [data[name] for name in ("p", "b", "variant", "samples", "families", "compiler")] == [
        0,
        0.1,
        "report",
        4,
        3,
        "inductor",
    ]
    assert data["excluded"] == [
        {
            "sample_id": "broken",
            "status": "baseline_failed",
            "reason": "out_of_memory",
            "error_type": "MemoryError",
            "error_message": None,
        }
    ]


def test_as_arrow_and_pandas() -> None:
    scores = error_aware_speedup_score(FOUR)
    table = scores.to_arrow()
    assert table["t"].to_pylist() == scores["t"]
    assert table["num_compile"].type == "int64"
    frame = scores.to_pandas()
    assert frame["ES"].tolist() == scores["ES"]


def test_the_text_names_parameters_and_exclusions() -> None:
    text = str(speedup_score([*FOUR, BROKEN_EAGER, make_run("x", 1.0)], variant="report"))
    lines = text.splitlines()
    assert lines[0] == (
        "S(t) of inductor: 5 samples of 4 families; p = 0.1, b = 0.1, variant report"
    )
    assert lines[2].split() == ["t", "S", "95", "%", "family", "correct"]
    assert " ".join(lines[19].split()) == (
        "t alpha beta lambda eta accuracy runtime compile vacuous undec."
    )
    assert len(lines) == 2 + 16 + 1 + 16 + 2
    assert max(map(len, lines)) <= 80
    assert lines[-2] == ("Not in N: 1, since eager or the harness failed: broken (baseline_failed)")
    assert lines[-1] == "Without a family: 1 sample, each counted as one of its own"


def test_html_escapes_text_from_records() -> None:
    html = speedup_score([make_run("a", 1.0, compiler="<script>")])._repr_html_()
    assert "<script>" not in html
    assert "S(t) of &lt;script&gt;: 1 sample of 1 family" in html
    assert html.count("<tr>") == 16
