"""What every command shares: help, errors, `--debug`, `--quiet`, `--version`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from graphnet_datasets import verbosity
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import DatasetNotFoundError
from graphnet_datasets.version import __version__
from tests.imports import imported_by

_GROUP: Any = typer.main.get_command(app)
COMMANDS = sorted(_GROUP.list_commands(typer.Context(_GROUP)))
LOGGER = logging.getLogger("graphnet_datasets")


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    handlers, level = LOGGER.handlers[:], LOGGER.level
    yield
    LOGGER.handlers[:] = handlers
    LOGGER.setLevel(level)


def test_the_commands_are_those_of_the_documentation() -> None:
    expected = {"list", "show", "export", "import", "run", "score", "plot", "import-log"}
    assert expected | {"compilers"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: graphnet {command}" in result.stdout


@pytest.mark.parametrize("command", [[], ["run"], ["tc", "tune"], ["doctor"]])
def test_the_help_names_plain_types(command: list[str]) -> None:
    text = CliRunner().invoke(app, [*command, "--help"]).stdout
    assert "<" not in text.replace("<=", "") and "list[" not in text
    assert not command or "TEXT" in text


def test_the_help_lists_commands_in_panels() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    titles = ("Graphs", "Compilers", "Records of runs", "New graphs", "Publishing", "Tuning")
    places = [text.index(f"─ {title} ─") for title in titles]
    assert places == sorted(places)
    assert "Other commands" not in text


def test_an_error_of_ours_is_one_sentence_and_exit_status_1() -> None:
    result = CliRunner().invoke(app, ["list", "--dataset", "./missing"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: The directory `missing` does not exist. Check the path.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--debug", "list", "--dataset", "./missing"],
        ["list", "--debug", "--dataset", "./missing"],
        ["list", "--dataset", "./missing", "--debug"],
    ],
)
def test_debug_raises_the_error_wherever_it_stands(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, DatasetNotFoundError)


def test_arguments_after_two_dashes_are_no_options() -> None:
    result = CliRunner().invoke(app, ["show", "--dataset", "./missing", "--", "--debug"])
    assert result.exit_code == 1
    assert result.stderr == "Error: The directory `missing` does not exist. Check the path.\n"


def test_a_command_that_does_not_exist_is_exit_status_2() -> None:
    result = CliRunner().invoke(app, ["lists"])
    assert result.exit_code == 2
    assert "No such command 'lists'" in result.stderr


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{__version__}\n"


def test_quiet_silences_the_progress_bars_of_datasets_too() -> None:
    assert not verbosity.are_progress_bars_disabled()
    try:
        CliRunner().invoke(app, ["--quiet", "list", "--dataset", "./missing"])
        assert verbosity.are_progress_bars_disabled()
    finally:
        verbosity.enable_progress_bars()


def test_help_imports_no_framework_and_no_heavy_library() -> None:
    script = (
        "from typer.testing import CliRunner\n"
        "from graphnet_datasets.cli.app import app\n"
        "assert CliRunner().invoke(app, ['run', '--help']).exit_code == 0"
    )
    heavy = "torch paddle datasets evaluate pyarrow numpy pandas matplotlib"
    assert imported_by(script, heavy) == []
