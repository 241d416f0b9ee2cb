"""What allocators share: tasks in order, which were dropped, one warm-up slot each."""

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
    """Keeps for each task its best latency after each slot, its slots, its trials and seconds.

    Every task gets one slot before `pick` decides. Who inherits writes `pick`.
    """

    def __init__(
        self, tasks: Sequence[Task], *, seed: int = 0, slot_trials: int = DEFAULT_SLOT_TRIALS
    ) -> None:
        if slot_trials < 1:
            raise TuningError(f"A slot of {slot_trials} trials measures nothing; give at least 1.")
        self.tasks = list(tasks)
        self.seed = seed
        self.slot_trials = slot_trials
        self._index = {task.task_id: index for index, task in enumerate(self.tasks)}
        count = len(self.tasks)
        self.curves: list[list[float]] = [[] for _ in range(count)]
        """Best latency so far in ms after each slot; infinite while nothing was ok."""
        self.trials = [0] * count
        self.seconds = [0.0] * count
        self.is_live = [True] * count
        self.draws = 0

    @abc.abstractmethod
    def pick(self, live: list[int]) -> int:
        """Return the index of the task that gets the next slot, one of `live`."""

    def next(self) -> Slot | None:
        """Return a slot for a task that had none yet, or else the one that `pick` says."""
        live = [index for index, is_live in enumerate(self.is_live) if is_live]
        if not live:
            return None
        index = next((each for each in live if not self.curves[each]), None)
        return Slot(self.tasks[self.pick(live) if index is None else index], self.slot_trials)

    def observe(self, task: Task, measurements: Sequence[Measurement]) -> None:
        """Add a point to the task's curve."""
        index = self._index[task.task_id]
        curve = self.curves[index]
        best = min((each.latency_ms for each in measurements), default=math.inf)
        curve.append(min(best, curve[-1] if curve else math.inf))
        self.trials[index] += len(measurements)
        self.seconds[index] += sum(
            (each.trial_s or 0.0) + (each.tuner_s or 0.0) for each in measurements
        )

    def drop(self, task: Task) -> None:
        """Give the task no more slots."""
        self.is_live[self._index[task.task_id]] = False

    def state(self) -> State:
        """Return curves, counts and what was dropped; infinite latencies as None."""
        return {
            "allocator": type(self).__name__,
            "tasks": [task.task_id for task in self.tasks],
            "curves": [
                [None if math.isinf(each) else each for each in curve] for curve in self.curves
            ],
            "trials": list(self.trials),
            "seconds": list(self.seconds),
            "is_live": list(self.is_live),
            "draws": self.draws,
        }

    def restore(self, state: State) -> None:
        """Take a state.

        Raises:
            TuningError: it is broken, of another allocator or of other tasks.
        """
        if state.get("allocator") != type(self).__name__:
            raise TuningError(
                f"The state is of the allocator `{state.get('allocator')}`, not of "
                f"`{type(self).__name__}`. Resume with the allocator that the run began with."
            )
        if state.get("tasks") != [task.task_id for task in self.tasks]:
            raise TuningError(
                "The state of the allocator is of other tasks. Resume with the tasks, in their "
                "order, that the run began with."
            )
        count = len(self.tasks)
        try:
            curves = [
                [math.inf if each is None else float(each) for each in curve]
                for curve in state["curves"]
            ]
            trials = [int(each) for each in state["trials"]]
            seconds = [float(each) for each in state["seconds"]]
            is_live = [bool(each) for each in state["is_live"]]
            draws = int(state["draws"])
        except (KeyError, TypeError, ValueError) as error:
            raise TuningError(
                f"The state of the allocator is broken: {type(error).__name__}: {error}. Start the "
                "run anew in another directory."
            ) from error
        if {len(curves), len(trials), len(seconds), len(is_live)} != {count}:
            raise TuningError(
                f"The state of the allocator does not have a curve for each of {count} tasks. "
                "Start the run anew in another directory."
            )
        self.curves, self.trials, self.seconds = curves, trials, seconds
        self.is_live, self.draws = is_live, draws

    def seconds_per_slot(self, index: int) -> float:
        """Return the mean seconds of a slot of the task so far; 1 where nothing was recorded."""
        slots = len(self.curves[index])
        return self.seconds[index] / slots if slots and self.seconds[index] > 0 else 1.0
