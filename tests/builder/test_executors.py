"""Captures on a Ray cluster: the same rows, the same build directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.capturing import Capture
from builder.catalog import Entry, parse_line
from builder.executors import capture_all
from graphnet_datasets.errors import RunError
from tests.clusters import two_nodes

LINES = [
    "torch/mlp-a | other | torch | mlp | sizes=[4, 2] | input=normal(8, 4) | float32 | eval | |",
    "torch/mlp-b | other | torch | mlp | sizes=[4, 3] | input=normal(8, 4) | float32 | eval | |",
    "torch/nothing | other | torch | no_such_builder | | input=normal(8, 4) | float32 | eval | |",
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as made:
        yield made


def entries() -> list[Entry]:
    return [parse_line(line) for line in LINES]


def contents(captures: list[Capture]) -> dict[str, Any]:
    return {
        each.entry.name: each.path.read_bytes() if each.path else each.reason for each in captures
    }


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_captures_of_the_cluster_are_those_of_this_machine(tmp_path: Path) -> None:
    there = contents(list(capture_all(entries(), tmp_path / "there", executor="ray")))
    here = contents(list(capture_all(entries(), tmp_path / "here")))
    assert there == here
    assert "no_such_builder" in there["torch/nothing"]
    assert all(isinstance(there[name], bytes) for name in ("torch/mlp-a", "torch/mlp-b"))
    # What the one has captured the other takes from the build directory.
    names = {path.name for path in (tmp_path / "there").iterdir()}
    again = list(capture_all(entries(), tmp_path / "there", executor="ray", is_failure_kept=True))
    assert contents(again) == there
    assert contents(list(capture_all(entries()[:2], tmp_path / "there"))) == {
        name: there[name] for name in ("torch/mlp-a", "torch/mlp-b")
    }
    assert {path.name for path in (tmp_path / "there").iterdir()} == names


def test_an_unknown_executor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^There is no executor `slurm`\. Choose one of local, ray"):
        list(capture_all([], tmp_path, executor="slurm"))


@pytest.mark.slow
def test_captures_of_this_machine_are_kept_and_not_made_again(tmp_path: Path) -> None:
    first = list(capture_all(entries(), tmp_path, jobs=2))
    assert {each.entry.name: each.path is not None for each in first} == {
        "torch/mlp-a": True,
        "torch/mlp-b": True,
        "torch/nothing": False,
    }
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = list(capture_all(entries(), tmp_path, jobs=2, is_failure_kept=True))
    assert contents(again) == contents(first)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
