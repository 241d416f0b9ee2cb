"""Scores by subtask: of records that tell it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app

from .run_rows import make_run


def test_scores_by_subtask(tmp_path: Path) -> None:
    rows = [
        make_run("a", 2.0, subtask="detection", run_id="1"),
        make_run("b", 8.0, subtask="detection", run_id="2"),
        make_run("c", 3.0, run_id="3"),
    ]
    write_runs(rows, tmp_path / "runs.parquet")
    arguments = ["score", str(tmp_path / "runs.parquet"), "--by-subtask", "--json"]
    result = json.loads(CliRunner().invoke(app, arguments).stdout)
    scores = {name: part["S"]["-3"] for name, part in result["by_subtask"].items()}
    assert {name: round(score, 9) for name, score in scores.items()} == {
        "detection": 4.0,
        "unknown": 3.0,
    }
    printed = CliRunner().invoke(app, arguments[:-1]).stdout
    assert "Subtask detection" in printed
