"""`graphnet compilers`."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.compilers.registry import ENTRY_POINT_GROUP
from tests.distributions import write_distribution

torch = pytest.importorskip("torch")


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["compilers", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_compiler_has_a_line() -> None:
    lines = printed().splitlines()
    assert lines[0].split() == ["name", "framework", "version", "devices", "remark"]
    names = {line.split()[0] for line in lines[1:] if not line.startswith(" ")}
    assert {"eager", "inductor", "aot_eager", "torchscript"} <= names


def test_json_says_the_same() -> None:
    rows = json.loads(printed("--json", "--framework", "torch"))
    (eager,) = [row for row in rows if row["name"] == "eager"]
    assert eager == {
        "name": "eager",
        "framework": "torch",
        "version": importlib.metadata.version("torch"),
        "devices": ["cpu", "cuda"],
        "is_available": True,
        "reason": "",
        "origin": "built in",
        "options": {},
    }
    assert {row["framework"] for row in rows} == {"torch"}


def test_options_are_shown_with_their_defaults() -> None:
    text = printed("--options", "--framework", "torch")
    assert "freezing" in text
    assert '"default"' in text


def test_a_broken_entry_point_is_listed_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_points = {"broken": "broken_example_module:Compiler"}
    write_distribution(tmp_path, "broken-example", ENTRY_POINT_GROUP, entry_points)
    monkeypatch.syspath_prepend(str(tmp_path))
    (row,) = [row for row in json.loads(printed("--json")) if row["name"] == "broken"]
    assert row["is_available"] is False
    assert row["reason"].startswith("The compiler `broken_example_module:Compiler` cannot be")
    assert "broken_example_module" not in sys.modules


def test_help_has_an_example() -> None:
    assert "Example: graphnet compilers" in printed("--help")
