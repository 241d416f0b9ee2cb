"""Records where a worker lies or a runtime disturbs; the rest is in test_runner."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from graphnet_datasets.benchmark.executors.collecting import read_run
from graphnet_datasets.benchmark.executors.turns import look_again
from graphnet_datasets.benchmark.handover import (
    FIRST,
    JUDGED,
    JudgedCall,
    digest_of,
    judged_message,
)
from graphnet_datasets.benchmark.judging.correctness import Output
from graphnet_datasets.benchmark.judging.eager_alone import EagerAlone
from graphnet_datasets.benchmark.judging.judging import Run, settle_suspicion
from graphnet_datasets.isolation import Ending, Outcome
from graphnet_datasets.schema import RUNS_SCHEMA, empty_run
from tests.benchmark.stamped import stamps_of

REPORT = {
    "baseline_latency_ms": [2.0, 2.0, 2.2],
    "candidate_latency_ms": [1.0, 1.0, 1.1],
    "is_candidate_first": [True, False, True],
    "baseline_first_ms": [2.0, 2.0],
    "clock": "perf_counter",
    "stopped_by": "precision",
    "compile_time_s": 0.5,
    "is_timed": True,
    f"outputs {FIRST}": [],
}
ONES = [Output("float32", np.ones(3, np.float32))]


def outcome(phase: str = "run", **report: Any) -> Outcome:
    """Return the end of a worker that says `report`; the kernel saw the calls of `REPORT`."""
    arms = REPORT["baseline_latency_ms"], REPORT["candidate_latency_ms"]
    stamps = stamps_of(*arms, REPORT["is_candidate_first"], REPORT["baseline_first_ms"])
    said = [{**REPORT, **report}]
    return Outcome(
        Ending.FINISHED, phase, said, None, 0, "", 0, 1.0, {"run": 1.0}, 0, 0, stamps=stamps
    )


def eager_alone(alone_ms: Any) -> EagerAlone:
    return EagerAlone(outcome(), alone_ms, first=ONES, again=ONES)


def judged(alone_ms: Any = (2.0, 2.0), **report: Any) -> dict[str, Any]:
    run = Run({**empty_run(), "seed": 0}, outcome(**report))
    if run.has_outputs:
        run.first = ONES
        run.judge(eager_alone(list(alone_ms)))
    assert run.record.keys() == set(RUNS_SCHEMA.names)
    return run.record


FORGED = {"candidate_latency_ms": [0.1, 0.1, 0.11]}
BUSY = {"load": 9.0, "other_cpu_share": 0.6, "steal_share": 0.0}


def suspected(**report: Any) -> Run:
    return Run({**empty_run(), "seed": 0}, outcome(**report))


def test_forged_times_on_a_calm_machine_are_refused() -> None:
    run = suspected(**FORGED)
    assert (run.record["status"], run.record["reason"]) == ("run_failed", "tampering")
    assert "0.1 ms by the worker's report" in run.record["error_message"]


def test_times_that_a_busy_machine_may_have_lengthened_are_undecidable() -> None:
    record = judged(**FORGED, machine=BUSY)
    assert (record["status"], record["clock"]) == ("ok", "kernel")
    assert record["candidate_latency_ms"] == pytest.approx([1.0, 1.0, 1.1], rel=1e-2)
    assert record["undecidable_reason"].startswith("Other processes took the processors, so")


def test_a_wrong_output_is_wrong_whatever_the_times_are() -> None:
    run = suspected(**FORGED, machine=BUSY)
    run.first = [Output("float32", np.zeros(3, np.float32))]
    run.judge(eager_alone([2.0, 2.0]))
    assert run.record["min_t"] > -1
    assert run.record["undecidable_reason"] is None


def test_a_suspicion_needs_each_run_and_a_calm_machine() -> None:
    calm, busy, clean = suspected(**FORGED), suspected(**FORGED, machine=BUSY), suspected()
    assert settle_suspicion([calm, busy, busy]) is calm
    assert settle_suspicion([busy, busy, busy]) is busy
    assert settle_suspicion([calm, clean]) is clean
    (warning,) = clean.record["warnings"]
    assert warning.startswith("times_repeated: A call of the candidate took 1 ms by the clock")


@pytest.mark.parametrize(("sets", "is_refused"), [([7, 8, 9], False), ([7, 8, 7], True)])
def test_no_two_judged_calls_have_the_same_inputs(
    tmp_path: Path, sets: list[int], is_refused: bool
) -> None:
    """The worker draws each set once: whoever has one come twice may know its answer."""
    calls = [JudgedCall(each, 0, False).to_json() for each in sets]
    files = {judged_message(number): [] for number in range(len(sets))}
    for name in (FIRST, JUDGED):
        (tmp_path / name).touch()
    ended = outcome(judged=calls, **files)
    run = Run({**empty_run(), "seed": 0}, ended)
    read_run(run, ended, tmp_path)
    assert run.has_outputs is not is_refused
    assert ("had the same inputs" in (run.record["error_message"] or "")) is is_refused


@pytest.mark.parametrize(
    ("first_ms", "second_ms", "warning"),
    [
        (1.6, 2.05, "noisy"),  # eager alone is as slow in another process
        (1.6, 1.65, "baseline_disturbed"),
        (0.9, 2.05, "baseline_disturbed"),  # more than a busy machine explains
    ],
)
def test_a_doubt_goes_where_eager_alone_takes_as_long_when_it_is_timed_again(
    first_ms: float, second_ms: float, warning: str
) -> None:
    run = Run({**empty_run(), "seed": 0}, outcome(baseline_first_ms=[1.0, 1.0]))
    run.first = ONES
    run.judge(eager_alone([first_ms] * 60))
    assert run.is_doubted
    run.look_again(eager_alone([second_ms] * 60))
    assert run.is_doubted is (warning == "baseline_disturbed")
    assert [each.partition(":")[0] for each in run.record["warnings"]] == [warning]
    assert run.record["baseline_alone_ms"] == [first_ms] * 60
    assert run.record["speedup"] == pytest.approx(2)


def test_a_doubt_goes_by_a_look_that_was_taken_for_an_earlier_candidate() -> None:
    """No process is started for it: there is no sample, and nobody who could start one."""
    run = Run({**empty_run(), "seed": 0}, outcome(baseline_first_ms=[1.0, 1.0]))
    run.first = ONES
    run.judge(eager_alone([1.6] * 60))
    looks = [eager_alone([1.65] * 60), eager_alone([2.05] * 60)]
    look_again(cast(Any, None), cast(Any, None), cast(Any, None), run, looks)
    assert not run.is_doubted
    assert len(looks) == 2


def test_a_doubt_stays_where_eager_alone_fails_when_it_is_timed_again() -> None:
    run = Run({**empty_run(), "seed": 0}, outcome(baseline_first_ms=[1.0, 1.0]))
    run.first = ONES
    run.judge(eager_alone([1.0] * 60))
    run.look_again(EagerAlone(None, [2.0] * 60))
    assert run.is_doubted


def test_a_clean_run() -> None:
    record = judged()
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)
    assert record["speedup"] == pytest.approx(2)
    assert record["is_baseline_disturbed"] is False
    assert record["compile_time_s"] == 0.5


@pytest.mark.parametrize(
    "lie",
    [
        {"baseline_latency_ms": [2.0, 2.0]},
        {"baseline_latency_ms": [2.0, 2.0, -1.0]},
        {"baseline_latency_ms": [2.0, 2.0, math.inf]},
        {"baseline_latency_ms": [2.0, 2.0, math.nan]},
        {"baseline_latency_ms": [2.0, 2.0, True]},
        {"baseline_latency_ms": "2.0"},
        {"candidate_latency_ms": None},
        {"is_candidate_first": [1, 0, 1]},
    ],
)
def test_times_that_are_no_times_are_a_failed_run(lie: dict[str, Any]) -> None:
    record = judged(**lie)
    assert (record["status"], record["reason"]) == ("run_failed", "crash")
    assert record["error_message"] == "The times that the worker reported are not valid."


def test_a_worker_that_ends_well_without_a_report_has_failed_in_its_phase() -> None:
    for phase, status in (("compile", "compile_failed"), ("run", "run_failed")):
        record = judged(phase=phase, is_timed=None)
        assert (record["status"], record["phase"]) == (status, phase)


def test_a_worker_cannot_take_itself_out_of_the_count() -> None:
    """Only eager can fail as eager, and what a candidate says of its phase counts only forward."""
    run = Run(empty_run(), outcome(failed_phase="baseline", is_timed=False))
    assert run.record["status"] == "run_failed"


@pytest.mark.parametrize(
    "odd", [{"compile_time_s": "long"}, {"compile_time_s": -1}, {"compile_time_s": math.nan}]
)
def test_a_figure_that_is_no_figure_is_null(odd: dict[str, Any]) -> None:
    assert judged(**odd)["compile_time_s"] is None


def test_warnings_may_hold_anything() -> None:
    assert judged(warnings=[3, "\ud800", "x" * 5000])["warnings"] == ["3", "?", "x" * 1000]
    assert judged(warnings="text")["warnings"] == []


@pytest.mark.parametrize(
    ("type_", "message", "reason"),
    [
        ("MemoryError", "", "out_of_memory"),
        ("torch.OutOfMemoryError", "CUDA out of memory.", "out_of_memory"),
        ("graphnet_datasets.errors.MemoryLimitError", "", "out_of_memory"),
        ("RuntimeError", "DefaultCPUAllocator: can't allocate memory: you tried", "out_of_memory"),
        ("RuntimeError", "Error: out of luck", "exception"),
    ],
)
def test_memory_errors_are_distinguished_from_others(type_: str, message: str, reason: str) -> None:
    ended = outcome()
    ended.ending, ended.error = Ending.ERROR, {"type": type_, "message": message}
    assert Run(empty_run(), ended).record["reason"] == reason


def test_a_recompilation_that_fails_while_running_is_compilation() -> None:
    ended = outcome(failed_phase="compile")
    ended.ending, ended.error = Ending.ERROR, {"type": "BackendCompilerFailed", "message": ""}
    record = Run(empty_run(), ended).record
    assert (record["status"], record["phase"], record["error_code"]) == (
        "compile_failed",
        "compile",
        3,
    )


def test_a_reference_that_fails_is_a_failed_baseline() -> None:
    ended = outcome()
    ended.ending, ended.error = Ending.TIMEOUT, None
    run = Run(empty_run(), outcome())
    run.first = ONES
    run.judge(EagerAlone(ended))
    assert (run.record["status"], run.record["reason"]) == ("baseline_failed", "timeout")
    assert run.record["speedup"] is None


@pytest.mark.parametrize(
    ("truth", "eager_t"),
    [
        ([np.ones(3)], -math.inf),
        ([np.array([1.0, 1.0, 1.5])], -0.6350),
        ([np.array([1.0, 1.0, np.nan])], math.inf),
        ([np.ones(2)], None),
        ([np.ones(3), np.ones(3)], None),
    ],
)
def test_eager_t_is_where_eager_agrees_with_the_oracle(truth: Any, eager_t: Any) -> None:
    run = Run({**empty_run(), "seed": 0}, outcome())
    run.first = ONES
    made = dataclasses.replace(
        eager_alone([2.0, 2.0]), oracle=[Output("float64", each) for each in truth]
    )
    run.judge(made)
    assert run.record["status"] == "ok"
    assert run.record["eager_t"] == (
        eager_t if eager_t is None else pytest.approx(eager_t, abs=1e-4)
    )


def test_outputs_of_another_shape_have_no_speedup() -> None:
    run = Run({**empty_run(), "seed": 0}, outcome())
    run.first = [Output("float32", np.ones(4, np.float32))]
    run.judge(eager_alone([2.0, 2.0]))
    assert run.record["status"] == "output_mismatch"
    assert run.record["speedup"] is run.record["speedup_low"] is run.record["speedup_high"] is None
    assert run.record["candidate_latency_ms"] == pytest.approx([1.0, 1.0, 1.1])


@pytest.mark.parametrize("seen", [set(), {"another"}])
def test_outputs_that_were_not_there_when_the_call_ended_are_refused(seen: set[str]) -> None:
    run = Run({**empty_run(), "seed": 0}, outcome())
    run.first, run.calls, run.judged = ONES, [JudgedCall(7, 3, True)], [ONES]
    run._seen = seen
    run.judge(dataclasses.replace(eager_alone([2.0, 2.0]), judged=[ONES]))
    assert (run.record["status"], run.record["reason"]) == ("run_failed", "tampering")
    run = Run({**empty_run(), "seed": 0}, outcome())
    run.first, run.calls, run.judged = ONES, [JudgedCall(7, 3, True)], [ONES]
    run._seen = {digest_of(output.elements.view(np.uint8).data for output in ONES)}
    run.judge(dataclasses.replace(eager_alone([2.0, 2.0]), judged=[ONES]))
    assert run.record["status"] == "ok"
