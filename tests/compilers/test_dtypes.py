"""Every arm that can run here returns eager's dtypes and values, for every dtype it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers.base import Compiler  # noqa: E402
from tests.compilers.dtype_trials import DTYPES  # noqa: E402
from tests.compilers.test_conformance import ENTRIES  # noqa: E402

ROOT = Path(__file__).parents[2]


def parameters() -> list[Any]:
    quick = ("eager", "torchscript")
    return [
        pytest.param(entry, id=entry.name, marks=[] if entry.name in quick else [pytest.mark.slow])
        for entry in ENTRIES
    ]


@pytest.mark.parametrize("entry", parameters())
def test_an_arm_agrees_with_eager_on_every_dtype_or_refuses_it(entry: Any, tmp_path: Path) -> None:
    """One process per arm, one graph per dtype: a vector, a number, and an empty tensor."""
    compiler = entry.load()
    is_available, why_not = compiler.is_available()
    if not is_available or "cpu" not in compiler.devices:
        pytest.skip(why_not or "It produces no code for a CPU.")
    done = subprocess.run(
        [sys.executable, "-m", "tests.compilers.dtype_trials", entry.name],
        cwd=ROOT,
        env={**os.environ, **Compiler.cache_environment(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"dtype"')]
    trials = [json.loads(line) for line in lines]
    assert [trial["dtype"] for trial in trials] == list(DTYPES), done.stderr[-2000:]
    faults = [trial for trial in trials if trial["outcome"] not in ("ok", "refused")]
    assert faults == []
