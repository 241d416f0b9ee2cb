"""`graphnet problem show`, and `graphnet check` of a problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphnet_datasets import load_dataset
from tests.problem_sets import softmax, write_problems

from .calling import call
from .test_check import QUICK

pytestmark = pytest.mark.torch

SOLUTION = "import torch\n\n\ndef candidate(x, op0_dim):\n    return torch.softmax(x, op0_dim)\n"


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("problems") / "graphnet"
    (name,) = write_problems(path, [softmax(4, 8, 0), softmax(4, 16, 1)])
    return path, name


def test_a_problem_is_listed_and_shown(problem: tuple[Path, str]) -> None:
    path, name = problem
    assert name in call("list", "problems", "--dataset", path).stdout
    row = json.loads(call("problem", "show", name, "--dataset", path).stdout)
    assert row["attributes"] == ["op0_dim"] and row["num_workloads"] == 2
    text = call("problem", "show", name, "--dataset", path, "--prompt", "--no-bound").stdout
    assert "op0_dim = 0" in text and "op0_dim = 1" in text and "torch.softmax" in text


def test_a_solution_is_judged_and_stored(problem: tuple[Path, str], tmp_path: Path) -> None:
    path, name = problem
    solution = tmp_path / "mine.py"
    solution.write_text(SOLUTION)
    words = ("--out", tmp_path / "mine", "--author", "me", "--license", "MIT", "--json")
    result = call("--quiet", "check", name, solution, "--dataset", path, *words, *QUICK)
    feedback = json.loads(result.stdout)
    assert feedback["is_accepted"] and feedback["interval"][0] <= feedback["speedup"]
    (row,) = load_dataset(tmp_path / "mine", "solutions", split="train")
    assert (row["author"], row["license"], row["source"]) == ("me", "MIT", SOLUTION)
    assert [verdict["outcome"] for verdict in row["verdicts"]] == ["right", "right"]


def test_a_file_that_is_no_solution_is_rejected(problem: tuple[Path, str], tmp_path: Path) -> None:
    path, name = problem
    solution = tmp_path / "mine.txt"
    solution.write_text(SOLUTION)
    result = call("check", name, solution, "--dataset", path, exit_code=3)
    assert "`mine.txt` has the suffix `.txt`. A solution is a file with one of" in result.stdout
