"""Every way to fail: each has its own status, reason and phase, and costs one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.isolation import landlock
from tests.adversarial.conftest import SETTINGS, Trial, make_trial

CHEATS = "tests.adversarial.cheats"


def ending(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["status"], record["reason"], record["phase"], record["error_code"]


# From version 6 on, Landlock keeps a job from sending signals to its server.
SERVER_KILL = (
    (("exception", "compile", 3), "PermissionError")
    if landlock.version() >= 6
    else (("crash", "compile", 3), "")
)


@pytest.mark.parametrize(
    ("candidate", "expected", "error"),
    [
        ("compile_raises", ("exception", "compile", 3), "RuntimeError"),
        ("compile_raises_unpicklable", ("exception", "compile", 3), "UnpicklableError"),
        ("compile_segfaults", ("crash", "compile", 3), "SIGSEGV"),
        ("compile_exits", ("crash", "compile", 3), "SystemExit"),
        ("compile_kills_server", *SERVER_KILL),
        ("compile_allocates", ("out_of_memory", "compile", 3), "RuntimeError"),
        ("run_raises", ("exception", "run", 2), "ValueError"),
        ("run_raises_later", ("exception", "run", 2), "ValueError"),
        ("run_segfaults", ("crash", "run", 2), "SIGSEGV"),
        ("run_exits", ("crash", "run", 2), "SystemExit"),
        ("run_leaves", ("exception", "run", 2), "SystemExit"),
        ("run_allocates", ("out_of_memory", "run", 2), "RuntimeError"),
    ],
)
def test_a_failure_has_the_status_of_the_phase_in_which_it_happened(
    trial: Trial, candidate: str, expected: tuple[Any, ...], error: str
) -> None:
    record = trial(candidate)
    assert ending(record) == (f"{expected[1]}_failed", *expected)
    assert record["error_type"].rpartition(".")[2] == error
    assert record["speedup"] is None
    assert record["min_t"] is None


@pytest.mark.parametrize(
    ("candidate", "phase"), [("compile_hangs", "compile"), ("run_hangs", "run")]
)
def test_a_hang_ends_with_its_phase_and_the_next_sample_runs(
    trial: Trial, candidate: str, phase: str
) -> None:
    record = trial(candidate, **{phase: 0.5})
    assert record["status"] == f"{phase}_failed"
    assert (record["reason"], record["phase"]) == ("timeout", phase)
    assert trial("eager")["status"] == "ok"


@pytest.mark.parametrize(
    ("candidate", "reason", "message"),
    [
        ("wrong_shape", "output_shape", "Output 0 has shape (1, 8), but eager's has (4, 8)."),
        (
            "broadcastable_shape",
            "output_shape",
            "Output 0 has shape (1, 4, 8), but eager's has (4, 8).",
        ),
        ("wrong_dtype", "output_dtype", "Output 0 has dtype float64, but eager's has float32."),
        ("wrong_count", "output_count", "The candidate returned 2 outputs, but eager returned 1."),
        ("no_outputs", "output_count", "The candidate returned 0 outputs, but eager returned 1."),
        ("not_a_tensor", "output_type", "Output 0 is a `builtins.str`, not a plain tensor."),
        ("lazy", "output_type", "Output 0 is a `tests.candidates.LazyTensor`, not a plain tensor."),
        ("writes_to_inputs", "input_mutation", "The candidate wrote to the input `input_0`."),
        ("writes_to_weights", "input_mutation", "The candidate wrote to the weight `parameter_0`."),
    ],
)
def test_outputs_of_another_kind_are_a_mismatch(
    trial: Trial, candidate: str, reason: str, message: str
) -> None:
    record = trial(candidate)
    assert ending(record) == ("output_mismatch", reason, "judge", 2)
    assert record["error_message"] == message
    assert record["min_t"] is None


@pytest.mark.slow
def test_a_gigabyte_of_output_is_cut_and_noted(trial: Trial) -> None:
    record = trial("prints_much", run=120)
    assert record["status"] in ("ok", "run_failed")
    assert any("of which the ends were kept" in warning for warning in record["warnings"])


@pytest.mark.usefixtures("unconfined")
def test_processes_left_by_a_candidate_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ORPHAN_FILE", str(tmp_path / "pid"))
    own = SampleRunner("cpu", SETTINGS)  # a server that was started with the variable set
    try:
        record = make_trial(own)("forks_away")
    finally:
        own.close()
    assert record["status"] == "ok"
    assert record["warnings"] == ["left 1 processes running, which were killed"]
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_a_good_exit_code_is_no_result(trial: Trial) -> None:
    record = trial("ends_early_and_well", module=CHEATS)
    assert (record["status"], record["reason"]) == ("run_failed", "crash")


def test_forking_without_end_costs_one_run(trial: Trial) -> None:
    record = trial("forks_without_end", module=CHEATS, max_processes=24)
    assert (record["status"], record["reason"]) == ("run_failed", "crash")
    assert trial("eager")["status"] == "ok"


def test_printing_without_end_costs_one_run_and_little_memory(trial: Trial) -> None:
    record = trial("prints_without_end", module=CHEATS, run=1.0)
    assert (record["status"], record["reason"]) == ("run_failed", "timeout")
    assert any("of which the ends were kept" in warning for warning in record["warnings"])
