"""`graphnet check`, from the command line to the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphnet_datasets.storage.table import write_table

from .calling import call
from .test_transcripts import tanh

pytestmark = pytest.mark.torch

QUICK = (
    "--budget", "0.1", "--threads", "1", "--memory-limit", "2", "--no-oracle", "--no-kernels",
)  # fmt: skip


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_table([tanh("test/one")], tmp_path / "sample.parquet")


def test_a_wrong_candidate_exits_3(sample: Path, tmp_path: Path) -> None:
    candidate = tmp_path / "mine.py"
    candidate.write_text("def double(x):\n    return (2 * x.tanh(),)\n")
    out = tmp_path / "runs"
    words = ("--quiet", "check", sample, candidate, "--out", out, *QUICK)
    first, second = call(*words, exit_code=3).stdout.splitlines()
    assert first.startswith("test/one  mine.py:double  WRONG   at t = -3 (largest error ")
    assert second.startswith("First wrong element: output 0 [")
    # The record is stored, so that the same command does not run again.
    verdict = json.loads(call(*words, "--json", exit_code=3).stdout)
    assert (verdict["outcome"], verdict["candidate"]) == ("wrong", "mine.py:double")
    assert verdict["wrong_elements"][0]["output"] == 0


@pytest.mark.slow
def test_a_right_candidate_exits_0(sample: Path, tmp_path: Path) -> None:
    candidate = tmp_path / "mine.py"
    candidate.write_text("def same(x):\n    return (x.tanh(),)\n")
    (line,) = call("--quiet", "check", sample, candidate, *QUICK).stdout.splitlines()
    assert line.startswith("test/one  mine.py:same  right   ")


def test_mistakes_are_answered_before_anything_runs(sample: Path, tmp_path: Path) -> None:
    result = call("check", sample, tmp_path / "absent.py", exit_code=1)
    assert (
        "cannot be read: No such file or directory. Pass the path of a source file" in result.output
    )
