"""`graphnet validate`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from typer.testing import CliRunner

from graphnet_datasets import Sample, load_dataset, write_directory, write_table
from graphnet_datasets.cli.app import app
from graphnet_datasets.cli.validate import start_early
from graphnet_datasets.isolation import descendants, keep_servers
from graphnet_datasets.storage.table import read_table
from graphnet_datasets.validation import CHECKS, Validation
from tests.validation.graphs import CUSTOM, UNNAMED_PLACE, VALID

READING = ["--check", "serializable", "--check", "statically_analysable"]


@pytest.mark.torch
def test_a_valid_directory_is_reported_check_by_check(tmp_path: Path) -> None:
    path = write_directory(VALID, tmp_path / "valid")
    result = CliRunner().invoke(app, ["validate", str(path)])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["id", "check", "outcome", "reason"]
    assert [line.split()[1:3] for line in lines[1:-1]] == [[name, "passed"] for name in CHECKS]
    assert lines[-1] == "1 sample, 0 of them not valid"


@pytest.mark.torch
def test_the_exit_status_is_1_where_a_check_fails(tmp_path: Path) -> None:
    path = write_table([VALID, CUSTOM], tmp_path / "two.parquet")
    result = CliRunner().invoke(app, ["--quiet", "validate", str(path), *READING, "--json"])
    assert result.exit_code == 1
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["id"], each["is_valid"]) for each in found] == [
        ("test/custom", False),
        ("test/graph", True),
    ]  # the smaller comes first
    assert [each["check"] for each in found[0]["checks"]] == READING[3::-2]


def test_samples_of_one_framework_can_be_chosen(tmp_path: Path) -> None:
    path = write_table([VALID, UNNAMED_PLACE], tmp_path / "two.parquet")
    command = ["--quiet", "validate", str(path), "--check", "serializable", "--json"]
    result = CliRunner().invoke(app, [*command, "--framework", "paddle"])
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [UNNAMED_PLACE.id]


@pytest.mark.torch
def test_outcomes_are_written_with_the_graphs(tmp_path: Path) -> None:
    path = write_table([VALID, CUSTOM], tmp_path / "two.parquet")
    out = tmp_path / "checked.parquet"
    command = ["--quiet", "validate", str(path), *READING, "--out"]
    result = CliRunner().invoke(app, [*command, str(out)])
    assert result.exit_code == 1, result.output
    assert result.stdout.splitlines()[-1] == (f"2 samples, 1 of them not valid; written to `{out}`")
    failed, valid = read_table(out).to_pylist()
    assert [each.outcome for each in Validation.from_row(valid).results] == ["passed"] * 2  # type: ignore[union-attr]
    assert valid["why_excluded"] is None
    assert failed["why_excluded"].startswith("statically_analysable: ")
    assert Sample.from_row(failed) == CUSTOM
    directory = tmp_path / "checked"
    assert CliRunner().invoke(app, [*command, str(directory)]).exit_code == 1
    assert load_dataset(directory, "excluded", split="train")["id"][:] == [CUSTOM.id]
    (kept,) = load_dataset(directory, split=None).values()
    assert kept["id"][:] == [VALID.id]
    again = CliRunner().invoke(app, [*command, str(out)])
    assert again.stderr == f"Error: `{out}` exists. Choose another path, or delete it.\n"


def test_an_unknown_check_is_a_wrong_option(tmp_path: Path) -> None:
    path = write_table([VALID], tmp_path / "one.parquet")
    result = CliRunner().invoke(app, ["validate", str(path), "--check", "speed"])
    assert result.exit_code == 2
    assert "Expected one of" in result.stderr


@pytest.mark.torch
@pytest.mark.parametrize(
    ("words", "is_early"),
    [
        ("torch/mlp", True),
        ("torch/mlp --json --limit 1", True),
        ("paddle/lenet", False),
        ("torch/mlp --check serializable", False),
        ("torch/mlp --framework paddle", False),
        ("--help", False),
        ("", False),
    ],
)
def test_processes_start_before_the_words_are_understood_where_torch_will_be_asked(
    words: str, is_early: bool
) -> None:
    with click.Context(click.Command("graphnet")) as ctx:
        start_early(ctx, words.split())
        assert (ctx.obj is not None) == is_early
        servers = ctx.obj
    assert servers is None or not len(servers)


def test_completing_a_command_line_starts_nothing() -> None:
    with click.Context(click.Command("graphnet"), resilient_parsing=True) as ctx:
        start_early(ctx, ["torch/mlp"])
        assert ctx.obj is None


@pytest.mark.torch
def test_a_usage_error_ends_early_servers() -> None:
    before = set(descendants(os.getpid()))
    with keep_servers(most=0):
        result = CliRunner().invoke(app, ["validate", "torch/no-such"])
    assert result.exit_code == 1
    assert "no-such" in result.stderr
    assert not [each for each in {*descendants(os.getpid())} - before if is_validating(each)]


def is_validating(pid: int) -> bool:
    try:
        return (
            b"graphnet_datasets.validation.torch_worker"
            in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
    except OSError:
        return False
