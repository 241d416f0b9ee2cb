"""The options that select samples, in all commands that take them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import typer.main

from graphnet_datasets.cli.app import app
from graphnet_datasets.cli.selection import SelectionOptions
from graphnet_datasets.errors import RunError
from graphnet_datasets.storage.filters import Filters
from tests.tables import write_dataset

from .calling import call

VERBS = (
    *("list", "run", "score", "select", "transform", "translate", "validate", "kernels"),
    *("tasks", "tune"),
)
OPTIONS = {field.name for field in dataclasses.fields(SelectionOptions)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


@pytest.mark.parametrize("verb", VERBS)
def test_all_verbs_take_the_same_filters_in_one_panel(verb: str) -> None:
    command: Any = typer.main.get_command(app)
    panels = {
        parameter.name: getattr(parameter, "rich_help_panel", None)
        for parameter in command.get_command(typer.Context(command), verb).params
    }
    assert panels.keys() >= OPTIONS
    assert {panels[name] for name in OPTIONS} == {SelectionOptions.title}


def test_each_option_is_a_filter() -> None:
    fields = {field.name for field in dataclasses.fields(Filters)} - {"where"}
    assert {"method" if name == "found_by" else name for name in OPTIONS - {"dataset"}} == fields
    options = SelectionOptions(name=["a"], found_by=["rules"], min_params=1.5, max_params=2.5)
    expected = Filters(name=("a",), method=("rules",), min_params=2, max_params=2)
    assert options.filters() == expected
    with pytest.raises(RunError, match="`--max-flops` is nan"):
        SelectionOptions(max_flops=float("nan")).filters()


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("run", ["--compiler", "eager"]),
        ("select", []),
        ("transform", ["--parts", "sole_op"]),
        ("translate", []),
        ("validate", []),
        # Its compiler is looked up before the samples, so that a missing one is refused at once.
        pytest.param("kernels", ["--compiler", "tc"], marks=pytest.mark.torch),
    ],
)
def test_an_empty_choice_names_the_nearest_one(
    verb: str, options: list[str], root: Path, tmp_path: Path
) -> None:
    words = [*options, "--dataset", str(root), "--out", str(tmp_path / "mine")]
    filters = ["--task", "cv", "--name", "chain-2", "--max-ops", "1"]
    result = call(verb, "cv", *words, *filters, exit_code=1)
    framework = " --framework torch" if verb in ("translate", "kernels") else ""
    assert result.stderr == (
        f"Error: No sample of `cv` matches `--name chain-2 --task cv{framework} --max-ops 1`. "
        "Without `--max-ops 1`, 7 samples remain; the nearest is `--max-ops 2`. "
        "Without `--name chain-2`, 1 sample remains.\n"
    )
    assert not (tmp_path / "mine").exists()


def test_a_choice_that_another_config_has_names_all(root: Path) -> None:
    result = call("validate", "cv", "--dataset", root, "--name", "nlp/", exit_code=1)
    assert result.stderr.endswith("remain. In `all`, 5 match.\n")


def test_translate_keeps_to_torch(root: Path, tmp_path: Path) -> None:
    words = ["cv", "--dataset", root, "--out", tmp_path / "mine", "--framework", "paddle"]
    result = call("translate", *words, exit_code=1)
    assert "`--framework paddle` excludes the samples of torch" in result.stderr
