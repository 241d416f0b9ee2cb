"""State outside a graph that a candidate changes: reported, restored, and timed without it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark.child.outside_state import ALL_KINDS, TABLE, OutsideState
from graphnet_datasets.benchmark.executors.sample_runner import (
    CandidateCompiler,
    SampleJob,
    SampleRunner,
)
from graphnet_datasets.schema import sample_to_row
from tests.benchmark.samples import LINEAR, quick
from tests.benchmark.test_runner import run_one
from tests.state_candidates import CHANGES

MODULE = "tests.state_candidates"


@pytest.fixture(scope="module")
def runner() -> Iterator[SampleRunner]:
    made = SampleRunner("cpu", quick(alone_calls=1, has_oracle=False, has_profile=False))
    yield made
    made.close()


def changes_in_a_fork(change: str) -> list[list[str]]:
    """Return the parts that are reported after a change, and those that are still changed."""
    read_end, write_end = os.pipe()
    if not os.fork():
        try:
            state = OutsideState()
            CHANGES[change][1]()
            before = dict(state._before)
            first = [part.name for part in state.undo(ALL_KINDS)]
            now = OutsideState()._before
            reports = [first, [name for name in before if now[name] != before[name]]]
            os.write(write_end, json.dumps(reports).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        reports = json.load(pipe)
    os.wait()
    return reports


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_named_and_undone(change: str) -> None:
    if change == "affinity" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("There is one processor.")
    reported, changed = changes_in_a_fork(change)
    assert CHANGES[change][0] in reported
    # Functions that run at exit cannot be listed; modules that a change imports register some.
    assert set(changed) <= {"atexit functions"}


def test_undoing_leaves_the_values_of_before() -> None:
    read = {entry.name: entry for entry in TABLE}["torch.default_dtype"].read
    state = OutsideState()
    torch.set_default_dtype(torch.float64)
    try:
        (change,) = [found for found in state.undo() if found.name == "torch.default_dtype"]
        assert (change.before, change.after) == ("torch.float32", "torch.float64")
        assert read() is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_values_of_variables_are_not_reported() -> None:
    state = OutsideState()
    os.environ["STATE_SECRET"] = "secret"  # noqa: S105
    (change,) = [found for found in state.undo() if "environ" in found.name]
    assert change.to_json() == ["os.environ[STATE_SECRET]", "", ""]
    assert "STATE_SECRET" not in os.environ


def test_modules_that_are_not_imported_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {entry.module for entry in TABLE} == {"sys", "torch", "numpy", "paddle"}
    monkeypatch.delitem(sys.modules, "paddle", raising=False)
    OutsideState()
    assert "paddle" not in sys.modules


def test_an_honest_candidate_changes_nothing(runner: SampleRunner) -> None:
    for compiler in (f"{MODULE}:honest", "eager", "torchscript"):
        record = run_named(runner, compiler)
        assert (record["status"], record["changed_state"]) == ("ok", []), compiler


def run_named(runner: SampleRunner, name: str) -> dict[str, Any]:
    row = sample_to_row(LINEAR, derived_columns(LINEAR))
    job = SampleJob(LINEAR, row, [("id", CandidateCompiler(name, "torch", {}, ""))])
    (record,) = runner.run(job)
    return record


@pytest.mark.parametrize("change", ["default_dtype", "num_threads", "hooks", "function_mode"])
def test_changes_by_compilation_are_undone_before_the_calls(
    runner: SampleRunner, change: str
) -> None:
    record = run_one(runner, f"{MODULE}:compiling_{change}")
    assert (record["status"], record["reason"]) == ("ok", ""), record["error_message"]
    (line,) = (text for text in record["changed_state"] if text.startswith(CHANGES[change][0]))
    assert line.endswith("(while compiling)")


@pytest.mark.parametrize("change", ["grad_mode", "num_threads", "trace", "seed", "dispatch_mode"])
def test_a_run_whose_calls_change_state_is_repeated_without(
    runner: SampleRunner, change: str
) -> None:
    record = run_one(runner, f"{MODULE}:calling_{change}")
    assert (record["status"], record["reason"]) == ("ok", ""), record["error_message"]
    assert any(
        text.startswith(CHANGES[change][0]) and text.endswith("(in a call)")
        for text in record["changed_state"]
    )


def test_a_change_that_a_later_call_undoes_is_listed(runner: SampleRunner) -> None:
    record = run_one(runner, f"{MODULE}:restores_the_threads")
    assert record["status"] == "ok", record["error_message"]
    (line,) = record["changed_state"]
    assert line.startswith("torch.num_threads") and line.endswith("(in a call)")


def test_a_candidate_that_needs_its_state_fails(runner: SampleRunner) -> None:
    record = run_one(runner, f"{MODULE}:needs_its_dtype")
    assert (record["status"], record["phase"]) == ("run_failed", "run")
    assert record["changed_state"] == [
        "torch.default_dtype: torch.float32 -> torch.float64 (while compiling)"
    ]
