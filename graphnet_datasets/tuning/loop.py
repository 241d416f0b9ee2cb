"""The tuning loop: allocate, propose, measure and observe, within a budget; resumable."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import time
from collections.abc import Callable, Sequence

from ..errors import TuningError
from .candidate import Candidate, Origin
from .interfaces import Measurer, State, TaskAllocator, Tuner
from .measurement import Measurement
from .task import Task

MAX_FAILURES = 16
"""A task without a success ends after this number of trials."""


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run: total trials over all tasks, and seconds including the tuner's own.

    Raises:
        TuningError: a limit is not above 0.
    """

    trials: int
    seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.trials < 1 or not self.seconds > 0:
            raise TuningError(
                f"The budget of {self.trials} trials and {self.seconds} seconds is empty. "
                "Both values must be above 0."
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run after a trial, as `graphnet tune` shows it."""

    task: Task
    row: Measurement
    best_ms: float
    """Best latency of this task so far; infinite without a success."""
    trials: int
    max_trials: int
    failures: int
    seconds: float
    max_seconds: float

    @property
    def seconds_left(self) -> float:
        """Estimated seconds until the trials or the seconds of the budget run out."""
        by_trials = self.seconds / max(self.trials, 1) * (self.max_trials - self.trials)
        return max(0.0, min(by_trials, self.max_seconds - self.seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class TuningResult:
    """The result of a run: rows in order of measurement, and the best row of each task."""

    rows: list[Measurement]
    best: dict[str, Measurement]
    ended: dict[str, str]
    """Maps a task id to the reason it ended: exhausted, or the first error if all trials failed."""
    seconds: float


class _Run:
    def __init__(
        self,
        tasks: Sequence[Task],
        tuner: Tuner,
        measurer: Measurer,
        allocator: TaskAllocator,
        budget: Budget,
    ) -> None:
        self.tasks = {task.task_id: task for task in tasks}
        self.tuner, self.measurer, self.allocator = tuner, measurer, allocator
        self.budget = budget
        self.rows: list[Measurement] = []
        self.best: dict[str, Measurement] = {}
        self.trials: dict[str, int] = {}
        self.failures = 0
        self.observed = 0
        self.batch: list[Candidate] = []
        self.ended: dict[str, str] = {}
        self.seconds = 0.0
        self.owed_s = 0.0  # seconds of the tuner not yet assigned to a row

    def state(self) -> State:
        return {
            "observed": self.observed,
            "batch": [
                [
                    candidate.task_id,
                    candidate.trace_json,
                    str(candidate.origin),
                    candidate.predicted,
                    candidate.predicted_std,
                ]
                for candidate in self.batch
            ],
            "ended": dict(self.ended),
            "seconds": self.seconds,
            "owed_s": self.owed_s,
            "tuner": self.tuner.state(),
            "allocator": self.allocator.state(),
        }

    def restore(self, state: State, rows: Sequence[Measurement]) -> None:
        try:
            self.observed = int(state["observed"])
            self.batch = [
                Candidate(task_id, trace, Origin(origin), predicted, std)
                for task_id, trace, origin, predicted, std in state["batch"]
            ]
            self.ended = dict(state["ended"])
            self.seconds, self.owed_s = float(state["seconds"]), float(state["owed_s"])
            parts = state["tuner"], state["allocator"]
        except (KeyError, TypeError, ValueError) as error:
            raise TuningError(
                f"The saved state of the run is invalid: {type(error).__name__}: {error}. Start "
                "over in another directory."
            ) from error
        if len(rows) < self.observed:
            raise TuningError(
                f"The saved state refers to {self.observed} rows, but only {len(rows)} exist. "
                "Start over in another directory."
            )
        for row in rows:
            self.append(row)
        self.tuner.restore(parts[0], self.rows[: self.observed])
        self.allocator.restore(parts[1])
        # Rows after the last state belong to the batch during which the run was killed.
        self.seconds += sum(record.trial_s or 0.0 for record in self.rows[self.observed :])

    @property
    def is_spent(self) -> bool:
        return len(self.rows) >= self.budget.trials or self.seconds >= self.budget.seconds

    def append(self, row: Measurement) -> None:
        self.rows.append(row)
        self.trials[row.task_id] = self.trials.get(row.task_id, 0) + 1
        self.failures += not row.is_ok
        best = self.best.get(row.task_id)
        if row.is_ok and (best is None or row.latency_ms < best.latency_ms):
            self.best[row.task_id] = row

    def fails_always(self, task_id: str) -> bool:
        return self.trials.get(task_id, 0) >= MAX_FAILURES and task_id not in self.best

    def end(self, task_id: str, reason: str) -> None:
        self.ended[task_id] = reason
        self.allocator.drop(self.tasks[task_id])


def tune(
    tasks: Sequence[Task],
    tuner: Tuner,
    measurer: Measurer,
    allocator: TaskAllocator,
    budget: Budget,
    *,
    run_id: str = "",
    tuner_name: str = "",
    tuner_options: str = "{}",
    seed: int = 0,
    keep: Callable[[Measurement], None] | None = None,
    save_state: Callable[[State], None] | None = None,
    on_trial: Callable[[Progress], None] | None = None,
    state: State | None = None,
    rows: Sequence[Measurement] = (),
) -> TuningResult:
    """Tune tasks until the budget is spent or every task has ended.

    Seconds include measuring, the tuner and the allocator; a replaying measurer is charged the
    recorded time of its rows (`trial_s`). A batch is cut off at the end of the budget, or after its
    task failed `MAX_FAILURES` times without a success. Such a task gets no more slots, and `ended`
    contains its first error.

    `keep` receives each row immediately, to append it to a file; `save_state` receives JSON data
    before and after each batch. To resume, pass the last `state` and all stored `rows` in order:
    the unfinished batch is completed, and the run continues as if it had not stopped.

    Raises:
        TuningError: there are no tasks, two tasks share an id, the trials do not allow one slot per
            task, or the state does not belong to the run.

    >>> from graphnet_datasets.tuning import Budget
    >>> Budget(trials=0)
    Traceback (most recent call last):
    graphnet_datasets.errors.TuningError: The budget of 0 trials and inf seconds is empty. \
Both values must be above 0.
    """
    run = _Run(tasks, tuner, measurer, allocator, budget)
    _check_plan(tasks, run.tasks, allocator, budget)
    if state is not None:
        run.restore(state, rows)
    elif rows:
        raise TuningError(f"Got {len(rows)} rows to resume from and no `state`. Pass both.")

    def measure_batch(task: Task) -> None:
        done = {record.trace_hash for record in run.rows[run.observed :]}
        batch = [candidate for candidate in run.batch if candidate.trace_hash not in done]
        batch = batch[: budget.trials - len(run.rows)]
        share_s = run.owed_s / max(len(batch), 1)
        if batch:
            run.owed_s = 0.0
        started = time.monotonic()
        with contextlib.closing(_in_turn(measurer, batch)) as measured:
            for row in measured:
                if measurer.is_replay:
                    run.seconds += row.trial_s or 0.0
                else:
                    now = time.monotonic()
                    run.seconds += now - started
                    started = now
                trial = len(run.rows)
                row = dataclasses.replace(
                    row,
                    run_id=run_id,
                    record_id=f"{run_id}/{trial}",
                    tuner=tuner_name,
                    tuner_options=tuner_options,
                    trial=trial,
                    seed=seed,
                    tuner_s=share_s,
                    created_at=row.created_at or datetime.datetime.now(datetime.UTC),
                )
                if keep is not None:
                    keep(row)
                run.append(row)
                if on_trial is not None:
                    on_trial(_progress(run, task, row))
                if run.is_spent or run.fails_always(task.task_id):
                    break

    def charge(started: float) -> None:
        elapsed_s = time.perf_counter() - started
        run.seconds += elapsed_s
        run.owed_s += elapsed_s

    def observe_batch(task: Task) -> None:
        started = time.perf_counter()
        fresh = run.rows[run.observed :]
        tuner.observe(fresh)
        allocator.observe(task, fresh)
        charge(started)
        run.observed, run.batch = len(run.rows), []
        if run.fails_always(task.task_id):
            first = next(record for record in run.rows if record.task_id == task.task_id)
            run.end(task.task_id, f"every trial failed, the first {first.status}: {first.error}")
        if save_state is not None:
            save_state(run.state())

    if run.batch:  # the unfinished batch of a resumed run
        task = run.tasks.get(run.batch[0].task_id)
        if task is None:
            raise TuningError(
                f"The saved state refers to the task `{run.batch[0].task_id}`, which is not among "
                "`tasks`. Resume with the tasks of the stopped run."
            )
        measure_batch(task)
        observe_batch(task)
    while not run.is_spent:
        started = time.perf_counter()
        allocator.reserve(budget.trials - len(run.rows))
        slot = allocator.next()
        if slot is None:
            break
        task = slot.task
        run.batch = tuner.propose(task, min(slot.trials, budget.trials - len(run.rows)))
        charge(started)
        if not run.batch:
            run.end(task.task_id, "exhausted: the tuner has no new candidates")
            continue
        if save_state is not None:
            save_state(run.state())
        measure_batch(task)
        observe_batch(task)
    return TuningResult(run.rows, run.best, run.ended, run.seconds)


def _in_turn(measurer: Measurer, batch: Sequence[Candidate]):
    """Yield rows one by one; closing the generator stops the remaining measurements."""
    yield from measurer.measure(batch)


def _check_plan(
    tasks: Sequence[Task], by_id: dict[str, Task], allocator: TaskAllocator, budget: Budget
) -> None:
    if not tasks:
        raise TuningError("`tasks` is empty. Pass at least one task.")
    if len(by_id) != len(tasks):
        raise TuningError("Two tasks have the same id. Merge them and concatenate their sources.")
    needed = len(tasks) * allocator.slot_trials
    if budget.trials < needed:
        raise TuningError(
            f"{budget.trials} trials are too few for {len(tasks)} tasks with slots of "
            f"{allocator.slot_trials} trials. Allow {needed} trials, tune fewer tasks, or use "
            "smaller slots."
        )


def _progress(run: _Run, task: Task, row: Measurement) -> Progress:
    return Progress(
        task=task,
        row=row,
        best_ms=run.best[task.task_id].latency_ms if task.task_id in run.best else math.inf,
        trials=len(run.rows),
        max_trials=run.budget.trials,
        failures=run.failures,
        seconds=run.seconds,
        max_seconds=run.budget.seconds,
    )
