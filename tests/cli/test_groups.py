"""Options in groups are single options of their command, with their defaults and in their panel."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from graphnet_datasets.cli import run, run_options, selection
from graphnet_datasets.cli.groups import OptionGroup, with_groups
from graphnet_datasets.errors import RunError

GROUPS = (
    run_options.CompilerOptions,
    selection.SelectionOptions,
    run_options.MeasurementOptions,
    run_options.ComparisonOptions,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Size(OptionGroup):
    title: ClassVar[str] = "How large"

    width: Annotated[int, typer.Option("--wide", min=1, help="In pixels.")] = 3
    names: Annotated[list[str] | None, typer.Option(help="Repeatable.")] = None


def invoke(*words: str) -> tuple[Any, list[Any]]:
    app, seen = typer.Typer(), []

    @app.command()
    @with_groups
    def draw(what: str, *, is_red: bool = False, size: Size) -> None:
        seen.append((what, is_red, size))

    return CliRunner().invoke(app, list(words)), seen


def test_a_command_gets_its_options_as_a_group() -> None:
    assert invoke("a")[1] == [("a", False, Size())]
    given = invoke("a", "--wide", "5", "--names", "x", "--names", "y", "--is-red")[1]
    assert given == [("a", True, Size(width=5, names=["x", "y"]))]
    assert invoke("a", "--wide", "0")[0].exit_code == 2


def test_a_group_has_a_panel_of_its_own_in_the_help() -> None:
    text = invoke("--help")[0].stdout
    assert text.index("Options") < text.index("How large") < text.index("--wide")


def test_all_options_of_a_run_are_those_of_its_groups_and_a_few_more() -> None:
    names = [field.name for group in GROUPS for field in dataclasses.fields(group)]
    assert len(set(names)) == len(names)
    parameters = list(inspect.signature(run.run_samples).parameters)
    others = ["names", "out", "again", "device", "executor", "profile", "strict", "jobs", "as_json"]
    assert parameters == [*others, *names]


def test_a_default_of_the_command_line_is_that_of_the_library() -> None:
    from graphnet_datasets.benchmark import Filters, Settings

    assert run_options.MeasurementOptions().settings() == Settings()
    assert selection.SelectionOptions().filters() == Filters()


def test_references_are_of_eager_by_default(tmp_path: Path) -> None:
    options = run_options.CompilerOptions()
    assert options.names("torch", is_control=False) == ["inductor"]
    assert options.names("paddle", is_control=True) == ["paddle-eager"]
    options = run_options.CompilerOptions(compiler=["a", "b"], option=["x=1"])
    assert options.names("torch", is_control=True) == ["a", "b"]
    with pytest.raises(RunError, match="`--option` sets an option of one compiler"):
        options.options()
    comparison = run_options.ComparisonOptions(reference=tmp_path)
    assert comparison.is_control and comparison.place(None) == tmp_path
    with pytest.raises(RunError, match="Remove `--out`"):
        comparison.place(tmp_path)
