"""Many graphs in bounded memory: a small part of `benchmarks/large.py`, which makes 100,000."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GIB = 2**30


@pytest.mark.slow
def test_two_thousand_graphs_are_built_listed_filtered_and_streamed(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/large.py", "2000", "--keep", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = {each["step"]: each for each in map(json.loads, result.stdout.splitlines())}
    assert found["build"]["rows"] == found["stream"]["rows"] == 2000
    assert found["list"]["printed"] == "2000 graphs, 1995 not shown"
    assert 0 < found["filter"]["rows"] < 2000
    assert found["filter"]["largest"] < 20
    assert all(each["peak_memory_bytes"] < 2 * GIB for each in found.values())
    assert not (tmp_path / "parts").exists()
