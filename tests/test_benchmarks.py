"""The scripts in `benchmarks/` are measured with by hand: what they import is held here."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_can_be_imported(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(script.parent)  # as it is when it runs as a script
    found = runpy.run_path(str(script), run_name=script.stem)
    assert callable(found["main"])
    assert found["__doc__"]
