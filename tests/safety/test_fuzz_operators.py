"""A short run of the fuzzer: nothing that `materialize` takes unasked dies by a signal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", pytest.param("paddle", marks=pytest.mark.paddle)])
def test_no_checked_operator_dies(framework: str) -> None:
    done = fuzz(framework, "--only", "checked", "--seconds", "25", "--calls", "40", "--seed", "7")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["checked_that_died"] == [], done.stdout[-3000:]
    assert summary["accepted"] > 0.2 * summary["calls"] > 0
    assert done.returncode == 0


def test_the_fuzzer_finds_what_kills() -> None:
    name = "torch.ops.aten._weight_norm_interface_backward.default"
    done = fuzz("torch", "--operators", name.replace(".", r"\."), "--calls", "150")
    line, summary = map(json.loads, done.stdout.splitlines()[-2:])
    assert line["operator"] == name
    assert line["deaths"][0]["signal"].startswith("SIG")
    assert name in line["deaths"][0]["call"]
    assert (summary["operators"], summary["checked_that_died"]) == (1, [])


def fuzz(framework: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = str(REPOSITORY / "benchmarks" / "fuzz_operators.py")
    command = [sys.executable, script, "--framework", framework, *options]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False
    )
