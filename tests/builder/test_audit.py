"""The audit of captures: the order of the models, and the verdicts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from builder.audit import (
    Audit,
    _embedded,
    audit,
    catalog_entries,
    draw,
    judge,
    read_results,
    summary,
)
from builder.capturing import EMBEDDED
from builder.catalog import parse_line
from graphnet_datasets.isolation import Ending, Finished, Outcome, PoolJob

LINE = "torch/mlp | other | torch | mlp | sizes=[4,2] | x=normal(2,4) | float32 | eval | |"
ENTRY = parse_line(LINE)


def test_the_catalogs_are_drawn_in_turns_and_by_the_seed() -> None:
    entries = catalog_entries()
    drawn = draw(entries, 0)
    assert sorted(entry.name for entry in drawn) == sorted(entry.name for entry in entries)
    assert [entry.name for entry in drawn] == [entry.name for entry in draw(entries, 0)]
    assert [entry.name for entry in drawn] != [entry.name for entry in draw(entries, 1)]
    kinds = {(entry.library, entry.mode, entry.dtype, bool(entry.dynamic)) for entry in entries}
    first = drawn[: len(kinds)]
    assert {(entry.library, entry.mode, entry.dtype, bool(entry.dynamic)) for entry in first} == (
        kinds
    )


def finished(ending: Ending, phase: str = "capture", kind: str = "", **more: Any) -> Finished:
    error = {"type": kind, "message": "It does not."} if kind else None
    outcome = Outcome(ending, phase, more.pop("messages", []), error, 0, "", 0, 1.0, {}, 0, 0)
    return Finished(PoolJob("torch/mlp", {"line": LINE}), outcome, None)


@pytest.mark.parametrize(
    ("job", "verdict"),
    [
        (finished(Ending.FINISHED, messages=[{"num_graphs": 2}]), "equal"),
        (finished(Ending.ERROR, kind="graphnet_datasets.errors.CaptureError"), "refused"),
        (finished(Ending.ERROR, kind="ValueError"), "failed"),
        (finished(Ending.CRASH), "failed"),
        (finished(Ending.ERROR, "build", "builder.catalog.CatalogError"), "skipped"),
        (finished(Ending.OUT_OF_MEMORY), "skipped"),
        (finished(Ending.ERROR, kind="MemoryError"), "skipped"),
    ],
)
def test_verdicts(job: Finished, verdict: str) -> None:
    result = judge(ENTRY, job)
    assert result.verdict == verdict
    assert (result.reason == "") == (verdict == "equal")
    assert result.to_json()["name"] == "torch/mlp"


def test_the_summary_counts_verdicts_and_kinds() -> None:
    other = dataclasses.replace(ENTRY, mode="train")
    results = [
        Audit(ENTRY, "equal"),
        Audit(other, "refused", "It breaks."),
        Audit(other, "skipped"),
    ]
    assert summary(results) == {"equal": 1, "refused": 1, "failed": 0, "skipped": 1, "kinds": 2}


def test_results_are_read_back_and_count(tmp_path: Path) -> None:
    results = [Audit(ENTRY, "equal", num_graphs=2)]
    path = tmp_path / "audit.jsonl"
    assert read_results(path, [ENTRY]) == []
    lines = [result.to_json() for result in results] + [{"name": "torch/unknown"}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert read_results(path, [ENTRY]) == results
    assert list(audit([ENTRY], 1, earlier=results)) == results


def test_large_models_are_not_drawn() -> None:
    lines, large = _embedded(EMBEDDED)
    assert large < set(lines)
    entries = catalog_entries()
    assert large.isdisjoint(entry.line for entry in entries)
