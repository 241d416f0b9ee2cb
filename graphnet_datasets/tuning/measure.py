"""Live measurement of candidates: built, checked and timed in isolated, limited processes."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import temporary_directory, write_bytes
from ..benchmark.records.environment import describe_environment
from ..errors import TuningError
from ..isolation import Ending, Finished, Limits, LocalPool, PoolJob, Work
from .candidate import Candidate
from .interfaces import Measurer
from .languages import language_of
from .measurement import PHASES, Measurement, TrialStatus
from .target import foreign, target_of
from .task import Task

_GIB = 2**30

MEASURE_LIMITS = Limits(
    phase_timeouts_s={"build": 30.0, "check": 30.0, "time": 20.0}, memory_bytes=3 * _GIB
)
"""Seconds from a candidate's start in its worker, without the wait for a worker. The limits also
apply to the single run of the unscheduled workload."""


@dataclasses.dataclass(frozen=True, slots=True)
class TimingPlan:
    """A timing plan: `repeat` means, each over `number` calls or at least `min_repeat_ms`.

    A slow candidate gets fewer repetitions, at least two; its row records the number.

    Raises:
        TuningError: a value is below its minimum. `repeat` must be at least 2, since half of the
            repetitions are reserved for scoring.
    """

    number: int = 1
    repeat: int = 6
    min_repeat_ms: int = 10
    warmup: int = 1
    input_seed: int = 0

    def __post_init__(self) -> None:
        if self.repeat < 2 or self.number < 1 or self.min_repeat_ms < 0 or self.warmup < 0:
            raise TuningError(
                f"`{self}` is not a valid timing plan. `repeat` must be at least 2, `number` at "
                "least 1, `min_repeat_ms` and `warmup` at least 0."
            )


class LiveMeasurer(Measurer):
    """A measurer that runs candidates in fork servers that have imported the tasks' language.

    The outputs of the unscheduled workload are computed once per task, and every candidate's
    outputs are compared with them before timing. A fixed kernel, the anchor, is timed before each
    batch. Rows keep the order of the candidates, also with several workers. Workloads, targets and
    traces must pass the verifier unless `trust_remote_code` is true.

    Raises:
        TuningError: the targets differ in their language or number of threads, or do not match
            this machine.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        *,
        plan: TimingPlan | None = None,
        limits: Limits = MEASURE_LIMITS,
        num_workers: int = 1,
        mcpu: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        self._trust_remote_code = trust_remote_code
        self.tasks = {task.task_id: task for task in tasks}
        self.plan = plan or TimingPlan()
        targets = {task.task_id: target_of(task) for task in self.tasks.values()}
        threads = {target.threads for target in targets.values()} or {1}
        if len(threads) > 1:
            raise TuningError(
                f"The tasks have targets with {sorted(threads)} threads. Measure tasks with "
                "different thread counts separately."
            )
        self._language = language_of(self.tasks.values())
        for task_id, target in targets.items():
            problem = foreign(target, mcpu or target.mcpu, self._language.kind)
            if problem:
                raise TuningError(f"The task `{self.tasks[task_id].task_name}` {problem}.")
        (self._threads,) = threads
        self._environment = self._language.environment(self._threads)
        self._limits, self._num_workers = limits, num_workers
        self._pool: LocalPool | None = None
        self._references: dict[str, Path | tuple[TrialStatus, str]] = {}
        self._stack = contextlib.ExitStack()
        self._directory = self._stack.enter_context(temporary_directory("graphnet-tuning-"))

    def close(self) -> None:
        """Stop the workers and drop the reference outputs."""
        self._close_pool()
        self._references.clear()
        self._stack.close()

    def measure(self, candidates: Sequence[Candidate]) -> Iterator[Measurement]:
        """Yield a row for each candidate as it completes, with the anchor times of the batch."""
        for proposal in candidates:
            if proposal.task_id not in self.tasks:
                raise TuningError(
                    f"The candidate's task `{proposal.task_id}` is unknown to this measurer. Pass "
                    "all tasks to the constructor."
                )
        if not candidates:
            return
        if not self._directory.exists():  # reopened after `close`
            self._directory = self._stack.enter_context(temporary_directory("graphnet-tuning-"))
        anchor, versions = self._anchor(self.tasks[candidates[0].task_id])
        common = {
            "anchor_ms": anchor,
            "tool_versions": versions,
            "device": device_name(),
            "num_threads": self._threads,
            "affinity": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
            "number": self.plan.number,
            "repeat": self.plan.repeat,
            "min_repeat_ms": self.plan.min_repeat_ms,
            "warmup": self.plan.warmup,
            "input_seed": self.plan.input_seed,
        }
        rows: dict[int, Measurement] = {}
        waiting: list[tuple[int, Candidate]] = []
        for number, candidate in enumerate(candidates):
            reference = self._reference(self.tasks[candidate.task_id])
            if not isinstance(reference, Path):
                status, error = reference
                rows[number] = self._row(candidate, status, common, error=error)
            else:
                waiting.append((number, candidate))
        next_number = 0
        with contextlib.closing(self._finished(waiting)) as finished:
            while next_number < len(candidates):
                while next_number in rows:
                    yield rows.pop(next_number)
                    next_number += 1
                if next_number == len(candidates):
                    break
                number, done = next(finished)
                rows[number] = self._judged(candidates[number], done, common)

    def check(
        self, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[TrialStatus, str, dict[str, Any]]]:
        """Build and check candidates without timing them.

        Yields the status of each, in order, with its error and the worker's report; `ok` means that
        the outputs are correct.
        """
        for candidate in candidates:
            reference = self._reference(self.tasks[candidate.task_id])
            if not isinstance(reference, Path):
                yield *reference, {}
                continue
            for _, done in self._finished([(0, candidate)], is_timed=False):
                yield *status_of(done), done.outcome.merged()

    def _finished(
        self, waiting: Sequence[tuple[int, Candidate]], *, is_timed: bool = True
    ) -> Generator[tuple[int, Finished], None, None]:
        here = (str(self._directory),)
        jobs = (
            PoolJob(
                str(number),
                {"kind": "measure", "job": str(self._write(number, candidate, is_timed))},
                reads=here,
            )
            for number, candidate in waiting
        )
        for done in self._run(jobs, len(waiting)):
            Path(done.job.payload["job"]).unlink(missing_ok=True)
            yield int(done.job.name), done

    def _run(self, jobs: Iterable[PoolJob], num_jobs: int) -> Iterator[Finished]:
        """Yield jobs as they finish; closing the iterator early stops all workers."""
        if self._pool is None:
            work = Work(self._language.worker, PHASES, self._limits, self._environment)
            self._pool = LocalPool(work, self._num_workers)
        running = self._pool.run(jobs)
        num_done = 0
        try:
            while num_done < num_jobs:
                done = next(running)
                num_done += 1
                if num_done == num_jobs:
                    next(running, None)  # exhaust it, because closing it would close the pool
                yield done
        finally:
            if num_done < num_jobs:
                self._close_pool()

    def _close_pool(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _write(self, number: int, candidate: Candidate, is_timed: bool) -> Path:
        task = self.tasks[candidate.task_id]
        job = {
            "task_id": task.task_id,
            "task_name": task.task_name,
            "workload_json": task.workload_json,
            "target_json": task.target_json,
            "trace_json": candidate.trace_json,
            "trust_remote_code": self._trust_remote_code,
            "reference": str(self._references[task.task_id]),
            "is_timed": is_timed,
            **dataclasses.asdict(self.plan),
        }
        return write_bytes(self._directory / f"job-{number}.json", json.dumps(job).encode())

    def _judged(
        self, candidate: Candidate, done: Finished, common: Mapping[str, Any]
    ) -> Measurement:
        """Return the row of a finished job, whatever its outcome."""
        report = done.outcome.merged()
        status, error = status_of(done)
        columns: dict[str, Any] = {
            name: report[name]
            for name in (
                "build_s",
                "run_s",
                "max_abs_error",
                "min_t",
                "feature_set",
                "machine_code_set",
            )
            if name in report
        }
        for name in ("features", "machine_code"):
            if report.get(name):
                columns[name] = np.asarray(report[name], np.float32)
        if status is TrialStatus.OK:
            columns |= {"times_ms": tuple(report["times_ms"]), "repeat": int(report["repeat"])}
        columns |= {"trial_s": done.outcome.duration_s, "load_average": os.getloadavg()[0]}
        try:
            return self._row(candidate, status, common, error=error, **columns)
        except (TuningError, TypeError, ValueError) as problem:
            message = f"The worker sent an invalid measurement: {problem}"
            return self._row(candidate, TrialStatus.CRASH, common, error=message)

    def _row(
        self,
        candidate: Candidate,
        status: TrialStatus,
        common: Mapping[str, Any],
        **columns: Any,
    ) -> Measurement:
        mcpu = target_of(self.tasks[candidate.task_id]).mcpu
        now = datetime.datetime.now(datetime.UTC)
        return Measurement.of(
            candidate, status, **{**common, "mcpu": mcpu, "created_at": now, **columns}
        )

    def _anchor(self, task: Task) -> tuple[tuple[float, ...], dict[str, str]]:
        payload = {
            "kind": "anchor",
            "target_json": task.target_json,
            "trust_remote_code": self._trust_remote_code,
            "repeat": self.plan.repeat,
        }
        (done,) = self._run([PoolJob("anchor", payload)], 1)
        report = done.outcome.merged()
        if not done.is_success:
            raise TuningError(
                f"The anchor, a plain matrix product, cannot be timed here: {done.reason}. "
                "Check the installation of the tasks' language and the limits."
            )
        return tuple(map(float, report["anchor_ms"])), dict(report["tool_versions"])

    def _reference(self, task: Task) -> Path | tuple[TrialStatus, str]:
        """Return the file of the reference outputs, or the reason why it is missing."""
        reference = self._references.get(task.task_id)
        if reference is None:
            job = {
                "task_id": task.task_id,
                "task_name": task.task_name,
                "workload_json": task.workload_json,
                "target_json": task.target_json,
                "trust_remote_code": self._trust_remote_code,
                "input_seed": self.plan.input_seed,
            }
            place = self._directory / "reference.json"
            write_bytes(place, json.dumps(job).encode())
            payload = {"kind": "reference", "job": str(place)}
            job = PoolJob("reference", payload, reads=(str(place),))
            (done,) = self._run([job], 1)
            problem = done.outcome.merged().get("uncheckable")
            if problem:
                reference = TrialStatus.UNCHECKABLE, f"A check could not fail: {problem}."
            elif done.result is None:
                reason = done.reason or "it returned no outputs"
                message = f"The unscheduled workload cannot be run: {reason}"
                reference = TrialStatus.RUN_FAILED, message
            else:
                reference = write_bytes(self._directory / f"{task.task_id}.npz", done.result)
            self._references[task.task_id] = reference
        return reference


def status_of(done: Finished) -> tuple[TrialStatus, str]:
    """Return the status of a trial, and its error in one line."""
    outcome = done.outcome
    report = outcome.merged()
    if outcome.ending is Ending.FINISHED:
        try:
            return TrialStatus(report["status"]), str(report.get("error", ""))
        except (KeyError, ValueError):
            return TrialStatus.CRASH, "The worker ended without a result."
    if outcome.ending is Ending.TIMEOUT:
        return TrialStatus.TIMEOUT, done.reason
    if outcome.ending is Ending.OUT_OF_MEMORY:
        return TrialStatus.OUT_OF_MEMORY, done.reason
    if outcome.ending is Ending.ERROR:
        if "MemoryError" in (outcome.error or {}).get("type", ""):
            return TrialStatus.OUT_OF_MEMORY, done.reason
        failed = TrialStatus.BUILD_FAILED if outcome.phase == "build" else TrialStatus.RUN_FAILED
        return failed, done.reason
    return TrialStatus.CRASH, done.reason


@functools.cache
def device_name() -> str:
    """Return the model name of the processor."""
    return str((describe_environment("cpu").get("cpu") or {}).get("model") or "cpu")
