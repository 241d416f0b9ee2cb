"""`--json` of the verbs that print tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from graphnet_datasets.cli.app import app
from tests.tables import write_dataset

from .calling import call

WITH_TABLES = (
    *("list", "show", "run", "score", "compare", "select", "validate", "compilers", "device"),
    *("doctor", "tune", "tc cache"),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


@pytest.mark.parametrize("verb", WITH_TABLES)
def test_a_verb_with_a_table_has_json(verb: str) -> None:
    command: Any = typer.main.get_command(app)
    for word in verb.split():
        command = command.get_command(typer.Context(command), word)
    assert any("--json" in parameter.opts for parameter in command.params)


def test_show_prints_an_object(root: Path) -> None:
    shown = json.loads(call("show", "cv/chain-2", "--dataset", root, "--json").stdout)
    assert (shown["id"], shown["num_ops"]) == ("cv/chain-2", 2)
    assert shown["inputs"] == [{"name": "input_0", "dtype": "float32", "shape": [2, 3]}]
    assert shown["code"].count("torch.relu(") == 2


def test_select_prints_an_object(root: Path) -> None:
    result = call("select", "cv", "--dataset", root, "--count", "2", "--json")
    chosen = json.loads(result.stdout)
    assert len(chosen["ids"]) == 2 and chosen["num_samples"] > 2
    assert len(chosen["shares"]["operators"]) == 2


@pytest.mark.torch
def test_run_prints_an_object_per_run_and_per_compiler(root: Path, tmp_path: Path) -> None:
    words = ["run", "cv/chain-1", "--dataset", root, "--compiler", "eager", "--out", tmp_path / "o"]
    words += ["--budget", "0.05", "--threads", "1", "--no-oracle", "--no-kernels", "--json"]
    run, arm = map(json.loads, call(*words).stdout.splitlines())
    assert (run["sample_id"], run["outcome"], run["status"]) == ("cv/chain-1", "right", "ok")
    assert arm["compiler"].startswith("eager")
    assert call(*words).stdout.splitlines()[0] == json.dumps(run)
