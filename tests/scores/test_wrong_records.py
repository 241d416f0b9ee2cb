"""A run that ended well with wrong outputs has a speedup that nobody counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark.again import Again
from graphnet_datasets.report import write_page
from graphnet_datasets.report.plots import log2_speedups
from graphnet_datasets.scores import by_sample, compare, speedup_score
from graphnet_datasets.scores.samples import cells_by_sample
from tests.scores.run_rows import make_run

WRONG = [
    {"min_t": -1.0},
    {"min_t": float("inf")},
    {"min_t": -2.9, "null_t": 1.0},
    {"min_t": -3.5, "null_t": -3.5},  # no better than zeros, which pass at -3 here
]


def runs_with(**columns: Any) -> list[dict[str, Any]]:
    times = {"candidate_latency_ms": [1.0, 1.0], "floor_ms": 0.5, "break_even_calls": 3}
    right = make_run("right", 2.0, family="f", **times)
    wrong = make_run("wrong", 32.5, family="g", compile_time_s=1.0, **times)
    return [right, wrong | columns]


@pytest.mark.parametrize("columns", WRONG)
def test_no_score_counts_the_speedup_of_a_wrong_run(columns: dict[str, Any]) -> None:
    runs = runs_with(**columns)
    failed = [runs[0], make_run("wrong", status="run_failed", family="g")]
    assert speedup_score(runs).at(-3)["S"] <= speedup_score([runs[0]]).at(-3)["S"]
    assert compare(failed, runs).counts["fixed"] == 0
    assert compare(runs, runs).counts["faster"] == 0
    assert compare([runs[0], make_run("wrong", 1.0, family="g")], runs).counts["broken"] == 1
    assert log2_speedups(runs).tolist() == [1.0]


@pytest.mark.parametrize("columns", WRONG)
def test_no_list_shows_the_speedup_of_a_wrong_run(columns: dict[str, Any], tmp_path: Path) -> None:
    runs = runs_with(**columns)
    rows = {row["sample_id"]: row for row in by_sample(runs)}
    assert (rows["right"]["is_right"], rows["right"]["speedup"]) == (True, 2.0)
    assert (rows["wrong"]["is_right"], rows["wrong"]["speedup"]) == (False, None)
    assert rows["wrong"]["roofline_share"] is rows["wrong"]["break_even_calls"] is None
    cells = {line[0]: line for line in cells_by_sample(list(rows.values()))[1]}
    assert cells["wrong"][2] == "not right at t = -3"
    assert "never" not in cells["wrong"]
    page = tmp_path / "page.html"
    write_page({"one": runs}, page)
    assert "32.5" not in page.read_text()
    assert "1 samples that are not correct at t = -3" in page.read_text()


def test_a_repeated_run_says_that_it_is_wrong() -> None:
    right, wrong = runs_with(min_t=-1.0)
    assert "ok, but not right at t = -3" in str(Again(wrong, wrong, 0, 0, 0))
    assert "32.5" not in str(Again(wrong, wrong, 0, 0, 0))
    assert "speedup 2.000" in str(Again(right, right, 0, 0, 0))
