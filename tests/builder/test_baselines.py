"""Verdicts on compilers as baselines of the problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builder.__main__ import main
from builder.baselines import AUTHOR, measure, ordered, ship, verdicts
from graphnet_datasets.analysis.splits import SPLITS, split_of
from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.benchmark.problems import load_problems, write_solution
from graphnet_datasets.schema.tables import SOLUTIONS
from graphnet_datasets.storage.table import read_table
from tests.problem_sets import linear_relu, softmax, write_problems

pytestmark = pytest.mark.torch
EAGER = {"torch": ("eager",)}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    path = tmp_path / "graphnet"
    write_problems(path, [linear_relu(4, 16, 8), linear_relu(2, 32, 8), softmax(4, 8, 1)])
    return path


def solutions(dataset: Path) -> list[dict[str, Any]]:
    return [
        row
        for path in dataset.glob(f"{SOLUTIONS.name}/*.parquet")
        for row in read_table(path).to_pylist()
    ]


def test_an_interrupted_run_continues_and_finished_problems_get_rows(
    dataset: Path, tmp_path: Path
) -> None:
    problems, build = load_problems(source=dataset), tmp_path / "build"
    measure(problems, build, 0.001, EAGER)
    assert len(read_runs(build / "torch")) == 1
    measure(problems, build, compilers_of=EAGER)
    assert len(read_runs(build / "torch")) == 3
    finished = [verdict for group in verdicts(problems, build, EAGER) for verdict in group]
    assert sorted(len(verdict.results) for verdict in finished) == [1, 2]
    rows = [verdict.to_row(author=AUTHOR) for verdict in finished]
    assert all(row["is_accepted"] and row["language"] == "compiler" for row in rows)
    assert all(row["speedup_low"] <= row["speedup"] <= row["speedup_high"] for row in rows)


def test_other_solutions_stay_and_those_of_changed_problems_go(
    dataset: Path, tmp_path: Path
) -> None:
    problems, build = load_problems(source=dataset), tmp_path / "build"
    measure(problems, build, compilers_of=EAGER)
    rows = [
        verdict.to_row(author=AUTHOR)
        for finished in verdicts(problems, build, EAGER)
        for verdict in finished
    ]
    foreign = {**rows[0], "solution_id": "0" * 32, "author": "someone", "language": "python"}
    write_solution(foreign, dataset)
    write_solution({**foreign, "solution_id": "1" * 32, "form": "another form"}, dataset)
    write_solution({**foreign, "solution_id": "2" * 32, "verdicts": []}, dataset)
    shipped = ship(rows, dataset)
    assert {row["solution_id"] for row in shipped} == {"0" * 32} | {
        row["solution_id"] for row in rows
    }
    assert sorted(row["solution_id"] for row in solutions(dataset)) == sorted(
        row["solution_id"] for row in shipped
    )


def test_problems_of_the_test_split_come_first() -> None:
    problems = ordered(load_problems())
    splits = [split_of(problem.row["split_group"]) for problem in problems]
    assert splits == sorted(splits, key=SPLITS.index, reverse=True)
    assert ordered(problems[::-1]) == problems


def test_without_records_the_command_says_how_to_go_on(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["baselines", "--out", str(dataset), "--build", str(tmp_path / "none"), "--no-run"]
    assert main(words) == 1
    assert "has no problem with records of all workloads" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_writes_a_row_for_each_compiler(dataset: Path, tmp_path: Path) -> None:
    words = ["baselines", "--out", str(dataset), "--build", str(tmp_path / "build")]
    assert main(words) == 0
    rows = solutions(dataset)
    assert sorted(row["source"] for row in rows) == sorted(2 * ["eager", "inductor", "tc"])
    assert all(row["is_accepted"] and row["name"].startswith(row["source"]) for row in rows)
