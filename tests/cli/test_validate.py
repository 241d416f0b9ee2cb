"""`graphnet validate`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from graphnet_datasets import write_directory, write_table
from graphnet_datasets.cli.app import app
from graphnet_datasets.validation import CHECKS
from tests.validation.graphs import NONZERO, VALID

READING = ["--check", "serializable", "--check", "statically_analysable"]


def test_a_valid_directory_is_reported_check_by_check(tmp_path: Path) -> None:
    path = write_directory(VALID, tmp_path / "valid")
    result = CliRunner().invoke(app, ["validate", str(path)])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["id", "check", "outcome", "reason"]
    assert [line.split()[1:3] for line in lines[1:-1]] == [[name, "passed"] for name in CHECKS]
    assert lines[-1] == "1 samples, 0 of them not valid"


def test_the_exit_status_is_1_where_a_check_fails(tmp_path: Path) -> None:
    path = write_table([VALID, NONZERO], tmp_path / "two.parquet")
    result = CliRunner().invoke(app, ["--quiet", "validate", str(path), *READING, "--json"])
    assert result.exit_code == 1
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["id"], each["is_valid"]) for each in found] == [
        ("test/graph", True),
        ("test/nonzero", False),
    ]
    assert [each["check"] for each in found[0]["checks"]] == READING[3::-2]


def test_an_unknown_check_is_a_wrong_option(tmp_path: Path) -> None:
    path = write_table([VALID], tmp_path / "one.parquet")
    result = CliRunner().invoke(app, ["validate", str(path), "--check", "speed"])
    assert result.exit_code == 2
    assert "it is one of" in result.stderr
