"""A short run of the fuzzer: operators that `materialize` accepts by default do not crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("framework", "what"),
    [
        ("torch", "calls"),
        pytest.param("torch", "walks", marks=pytest.mark.slow),
        pytest.param("torch", "programs", marks=pytest.mark.slow),
        pytest.param("paddle", "calls", marks=pytest.mark.paddle),
        pytest.param("paddle", "programs", marks=[pytest.mark.paddle, pytest.mark.slow]),
    ],
)
def test_no_checked_operator_dies(framework: str, what: str) -> None:
    limit = {"calls": "110", "walks": "40", "programs": "60"}[what]
    done = fuzz(
        framework, "--what", what, "--only", "checked", "--limit", limit, "--calls", "8",
        "--seed", "7",
    )  # fmt: skip
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["checked_that_died"] == [], done.stdout[-3000:]
    share = 0.02 if what == "programs" else 0.1
    assert summary["accepted"] > share * summary["calls"] > 0
    assert done.returncode == 0


@pytest.mark.slow
def test_the_fuzzer_finds_crashes() -> None:
    """Treat an operator that does not validate its operands as checked, and find its crash."""
    name = "torch.ops.aten._cdist_backward.default"
    options = ("--operators", name.replace(".", r"\."), "--calls", "100", "--as-checked")
    done = fuzz("torch", *options)
    line, summary = map(json.loads, done.stdout.splitlines()[-2:])
    assert line["operator"] == name
    assert line["deaths"][0]["signal"].startswith("SIG")
    assert name in line["deaths"][0]["call"]
    assert summary["checked_that_died"] == [name]
    assert done.returncode == 1


def fuzz(framework: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = str(REPOSITORY / "benchmarks" / "fuzz_operators.py")
    command = [sys.executable, script, "--framework", framework, *options]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
