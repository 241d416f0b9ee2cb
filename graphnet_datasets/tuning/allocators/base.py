"""The base class of the allocators: per-task curves, dropped tasks and warm-up slots."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence

from ...errors import TuningError
from ..interfaces import Slot, State, TaskAllocator
from ..measurement import Measurement
from ..task import Task

DEFAULT_SLOT_TRIALS = 8


class CurveAllocator(TaskAllocator):
    """An allocator that tracks each task's best latency per slot, its trials and its seconds.

    Every task gets one slot before `pick` decides. Subclasses implement `pick`.
    """

    def __init__(
        self, tasks: Sequence[Task], *, seed: int = 0, slot_trials: int = DEFAULT_SLOT_TRIALS
    ) -> None:
        if slot_trials < 1:
            raise TuningError(f"`slot_trials` must be at least 1, got {slot_trials}.")
        self.tasks = list(tasks)
        self.seed = seed
        self.slot_trials = slot_trials
        self._index = {task.task_id: index for index, task in enumerate(self.tasks)}
        count = len(self.tasks)
        self.curves: list[list[float]] = [[] for _ in range(count)]
        """Best latency so far in ms after each slot; infinite without a success."""
        self.trials = [0] * count
        self.seconds = [0.0] * count
        self.is_live = [True] * count
        self.draws = 0

    @abc.abstractmethod
    def pick(self, live: list[int]) -> int:
        """Return the index of the task that gets the next slot, an element of `live`."""

    def next(self) -> Slot | None:
        """Return a slot for the first task without one, or else for the choice of `pick`."""
        live = [index for index, is_live in enumerate(self.is_live) if is_live]
        if not live:
            return None
        index = next((candidate for candidate in live if not self.curves[candidate]), None)
        return Slot(self.tasks[self.pick(live) if index is None else index], self.slot_trials)

    def observe(self, task: Task, measurements: Sequence[Measurement]) -> None:
        """Add a point to the task's curve."""
        index = self._index[task.task_id]
        curve = self.curves[index]
        best = min((row.latency_ms for row in measurements), default=math.inf)
        curve.append(min(best, curve[-1] if curve else math.inf))
        self.trials[index] += len(measurements)
        self.seconds[index] += sum(
            (row.trial_s or 0.0) + (row.tuner_s or 0.0) for row in measurements
        )

    def drop(self, task: Task) -> None:
        """Assign no more slots to the task."""
        self.is_live[self._index[task.task_id]] = False

    def state(self) -> State:
        """Return curves, counts and dropped tasks; infinite latencies become None."""
        return {
            "allocator": type(self).__name__,
            "tasks": [task.task_id for task in self.tasks],
            "curves": [
                [None if math.isinf(latency) else latency for latency in curve]
                for curve in self.curves
            ],
            "trials": list(self.trials),
            "seconds": list(self.seconds),
            "is_live": list(self.is_live),
            "draws": self.draws,
        }

    def restore(self, state: State) -> None:
        """Restore a saved state.

        Raises:
            TuningError: the state is invalid, or belongs to another allocator or other tasks.
        """
        if state.get("allocator") != type(self).__name__:
            raise TuningError(
                f"The state belongs to the allocator `{state.get('allocator')}`, not to "
                f"`{type(self).__name__}`. Resume with the allocator of the stopped run."
            )
        if state.get("tasks") != [task.task_id for task in self.tasks]:
            raise TuningError(
                "The state of the allocator belongs to other tasks. Resume with the tasks of the "
                "stopped run, in the same order."
            )
        count = len(self.tasks)
        try:
            curves = [
                [math.inf if latency is None else float(latency) for latency in curve]
                for curve in state["curves"]
            ]
            trials = [int(item) for item in state["trials"]]
            seconds = [float(item) for item in state["seconds"]]
            is_live = [bool(item) for item in state["is_live"]]
            draws = int(state["draws"])
        except (KeyError, TypeError, ValueError) as error:
            raise TuningError(
                f"The state of the allocator is invalid: {type(error).__name__}: {error}. Start "
                "over in another directory."
            ) from error
        if {len(curves), len(trials), len(seconds), len(is_live)} != {count}:
            raise TuningError(
                f"The state of the allocator lacks entries for some of {count} tasks. Start over "
                "in another directory."
            )
        self.curves, self.trials, self.seconds = curves, trials, seconds
        self.is_live, self.draws = is_live, draws

    def seconds_per_slot(self, index: int) -> float:
        """Return the mean seconds per slot of the task so far, or 1 without recorded seconds."""
        slots = len(self.curves[index])
        return self.seconds[index] / slots if slots and self.seconds[index] > 0 else 1.0
