"""The loop of every tuning run: allocate, propose, measure, observe, within a budget, resumable."""

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
"""A task ends after so many trials of which none was ok."""


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    """How much a run may take: trials of all tasks together, and seconds, the tuner's included.

    Raises:
        TuningError: either is not above zero.
    """

    trials: int
    seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.trials < 1 or not self.seconds > 0:
            raise TuningError(
                f"A budget of {self.trials} trials and {self.seconds} seconds allows nothing. "
                "Both have to be above zero."
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands after a trial: what `graphnet tune` shows."""

    task: Task
    row: Measurement
    best_ms: float
    """Of this task so far; infinite while none is ok."""
    trials: int
    max_trials: int
    failures: int
    seconds: float
    max_seconds: float

    @property
    def seconds_left(self) -> float:
        """What is left until the budget ends: the trials at their mean so far, or the seconds."""
        by_trials = self.seconds / max(self.trials, 1) * (self.max_trials - self.trials)
        return max(0.0, min(by_trials, self.max_seconds - self.seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class TuningResult:
    """What a run found: rows in order of measurement, the best of each task, why tasks ended."""

    rows: list[Measurement]
    best: dict[str, Measurement]
    ended: dict[str, str]
    """Task id to the reason: exhausted, or the first error of a task that only fails."""
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
        self.owed_s = 0.0  # seconds of the tuner that no row carries yet

    def state(self) -> State:
        return {
            "observed": self.observed,
            "batch": [
                [
                    each.task_id,
                    each.trace_json,
                    str(each.origin),
                    each.predicted,
                    each.predicted_std,
                ]
                for each in self.batch
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
                f"The state of the run is broken: {type(error).__name__}: {error}. Start the run "
                "anew in another directory."
            ) from error
        if len(rows) < self.observed:
            raise TuningError(
                f"The state of the run knows of {self.observed} rows and there are {len(rows)}. "
                "Rows were lost; start the run anew in another directory."
            )
        for row in rows:
            self.append(row)
        self.tuner.restore(parts[0], self.rows[: self.observed])
        self.allocator.restore(parts[1])
        # What a killed run measured of its last batch was written after its last state.
        self.seconds += sum(each.trial_s or 0.0 for each in self.rows[self.observed :])

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

    Seconds are those of measuring and of the tuner and allocator themselves; where the measurer
    replays, measuring is charged as its rows recorded it (`trial_s`). A batch is cut off where the
    budget ends or its task has failed `MAX_FAILURES` times without success; such a task gets no
    more slots and its first error is the reason in `ended`.

    `keep` gets each row at once, to append it to a file; `save_state` gets JSON data before and
    after each batch. To resume pass the last `state` and all `rows` that were kept, in order: the
    batch at work is finished, and the run goes on as if it had never stopped.

    Raises:
        TuningError: there are no tasks, two have one id, the trials do not give each task a slot,
            or the state does not belong to the run.

    >>> from graphnet_datasets.tuning import Budget
    >>> Budget(trials=0)
    Traceback (most recent call last):
    graphnet_datasets.errors.TuningError: A budget of 0 trials and inf seconds allows nothing. \
Both have to be above zero.
    """
    run = _Run(tasks, tuner, measurer, allocator, budget)
    _check_plan(tasks, run.tasks, allocator, budget)
    if state is not None:
        run.restore(state, rows)
    elif rows:
        raise TuningError(f"{len(rows)} rows are to be resumed without a state; pass both.")

    def measure_batch(task: Task) -> None:
        done = {each.trace_hash for each in run.rows[run.observed :]}
        batch = [each for each in run.batch if each.trace_hash not in done]
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
        taken = time.perf_counter() - started
        run.seconds += taken
        run.owed_s += taken

    def observe_batch(task: Task) -> None:
        started = time.perf_counter()
        fresh = run.rows[run.observed :]
        tuner.observe(fresh)
        allocator.observe(task, fresh)
        charge(started)
        run.observed, run.batch = len(run.rows), []
        if run.fails_always(task.task_id):
            first = next(each for each in run.rows if each.task_id == task.task_id)
            run.end(task.task_id, f"every trial failed, the first {first.status}: {first.error}")
        if save_state is not None:
            save_state(run.state())

    if run.batch:  # of a run that was stopped within a batch
        task = run.tasks.get(run.batch[0].task_id)
        if task is None:
            raise TuningError("The state of the run names a task that is not among its tasks.")
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
            run.end(task.task_id, "exhausted: the tuner has no candidate that is new")
            continue
        if save_state is not None:
            save_state(run.state())
        measure_batch(task)
        observe_batch(task)
    return TuningResult(run.rows, run.best, run.ended, run.seconds)


def _in_turn(measurer: Measurer, batch: Sequence[Candidate]):
    """Give the rows one by one, so that closing stops what is not measured yet."""
    yield from measurer.measure(batch)


def _check_plan(
    tasks: Sequence[Task], by_id: dict[str, Task], allocator: TaskAllocator, budget: Budget
) -> None:
    if not tasks:
        raise TuningError("There is no task to tune.")
    if len(by_id) != len(tasks):
        raise TuningError("Two of the tasks have the same id. Merge them and add their sources.")
    needed = len(tasks) * allocator.slot_trials
    if budget.trials < needed:
        raise TuningError(
            f"{budget.trials} trials do not give each of {len(tasks)} tasks a slot of "
            f"{allocator.slot_trials}: some would be skipped. Allow {needed} trials, tune fewer "
            "tasks, or make the slots smaller."
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
