"""The command line, called in this process."""

from __future__ import annotations

from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app


def call(*arguments: str | Path, exit_code: int = 0) -> Result:
    """Call `graphnet` and return what it said, after its exit status was as expected."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, f"{result.output}\n{result.exception!r}"
    return result
