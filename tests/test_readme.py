"""The jobs that run README."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()

_spec = importlib.util.spec_from_file_location("readme", ROOT / ".ci" / "readme.py")
assert _spec is not None and _spec.loader is not None
readme = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(readme)


def shell_lines() -> list[str]:
    """Return the lines of README that a reader types into a shell."""
    return re.findall(r"^\$ (.*)$", README, re.MULTILINE)


def test_every_line_of_the_readme_is_run() -> None:
    commands = list(readme.commands(README))
    assert [line for line in shell_lines() if line not in commands] == [
        line for line in shell_lines() if line.startswith("make ")
    ]
    assert "graphnet report graphnet --out site/" in commands
    assert commands.index("graphnet list cv") > commands.index(
        "pip install 'graphnet-datasets[torch,report]'"
    )
    (script,) = [command for command in commands if command.startswith("python ")]
    assert (
        script.count("\nimport evaluate\n")
        == script.count("from graphnet_datasets import extract")
        == 1
    )


def test_ci_runs_the_first_block() -> None:
    first = re.findall(r"```console\n(.*?)```", README, re.DOTALL)[0]
    commands = re.findall(r"^\$ (make \w+)", first, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    ran = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [command for command in commands if command not in ran] == []


def test_a_failing_command_is_reported(tmp_path: Path) -> None:
    page = "```console\n$ touch here\n$ test -f here\n$ false\n```\n"
    assert readme.run_page(sys.executable, tmp_path / "any.whl", page) == ["false"]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150
