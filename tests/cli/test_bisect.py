"""`graphnet bisect`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from tests.tables import write_dataset

from .calling import call

QUICK = ("--threads", "1", "--memory-limit", "2")
CANDIDATES = Path(__file__).parents[1] / "candidates.py"
WRONG = "tests.candidates:wrong_dtype"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "dataset")


@pytest.mark.slow
def test_a_bisection_writes_its_files(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("bisect", "cv/chain-2", "--dataset", dataset, "--compiler", WRONG, "--out", out)
    said = call(*words, *QUICK).stdout
    assert "wrong_dtype fails on 1 operator of 2 of cv/chain-2" in said
    names = {"bisection.json", "minimal.parquet", "minimal.svg", "test_minimal.py", "trials.jsonl"}
    assert {path.name for path in out.iterdir()} == names
    assert json.loads((out / "bisection.json").read_text())["targets"] == ["torch.relu"]
    again = call(*words, *QUICK).stdout
    assert "\n0 trials," in again
    stopped = call(*words, *QUICK, "--seed", "1", "--max-trials", "2", exit_code=3).stdout
    assert "the budget ran out" in stopped


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    compiler = f"{CANDIDATES}:wrong_dtype"
    words = ["bisect", "cv/chain-2", "--dataset", dataset, "--compiler", compiler, "--out", out]
    program = [sys.executable, "-m", "graphnet_datasets", "--quiet", *words, *QUICK]
    running = subprocess.Popen(
        [str(word) for word in program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    trials = out / "trials.jsonl"
    while running.poll() is None and not (trials.exists() and trials.read_bytes()):
        time.sleep(0.01)
    running.kill()
    running.wait()
    num_done = len(trials.read_bytes().splitlines())
    said = call(*words, *QUICK).stdout
    assert f" {num_done} known from before" in said
    assert "fails on 1 operator of 2" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("cv/none", "--compiler", WRONG), "`cv/none` is neither a config nor the id of a sample"),
        (("cv/chain-2", "--compiler", "none"), "There is no compiler `none` for torch"),
        (("cv/chain-2", "--compiler", "eager"), "`eager` does not fail on `cv/chain-2`"),
        (("cv/chain-2", "--compiler", "no.py:x"), "There is no file `no.py`"),
        (("cv/chain-2", "--compiler", WRONG, "--timeout", "x"), "`x` is not a timeout"),
        (("cv/chain-2", "--compiler", WRONG, "--timeout", "x=1"), "There is no phase `x`"),
    ],
)
def test_failed_bisections_are_explained_and_leave_no_files(
    words: tuple[str, ...], sentence: str, dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = call("bisect", *words, "--dataset", dataset, "--out", out, *QUICK, exit_code=1)
    assert sentence in ended.stderr
    assert not out.exists() or [path.name for path in out.iterdir()] == ["trials.jsonl"]


def test_several_samples_are_refused(dataset: Path, tmp_path: Path) -> None:
    words = ("bisect", "cv", "--dataset", dataset, "--compiler", WRONG, "--out", tmp_path / "out")
    message = call(*words, exit_code=1).stderr
    assert "selects 25 samples, but one is needed. Choose one by its id" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_rights_to_write_it_says_so_at_once(dataset: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    words = ("bisect", "cv/chain-2", "--dataset", dataset, "--compiler", WRONG)
    said = call(*words, "--out", closed / "out", exit_code=1).stderr
    assert "You have no right to read or write" in said
