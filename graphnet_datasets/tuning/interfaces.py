"""What the parts of a tuning run are to each other: one interface for all systems.

    task, trials = allocator.next()
    rows = measurer.measure(tuner.propose(task, trials))
    tuner.observe(rows); allocator.observe(task, rows)

A system is one or several of these classes; the loop knows nothing else of it. `Space` alone may
know a compiler, so that everything else is tested on a small space of numbers.

A state is plain JSON data: dictionaries, lists, texts, numbers, truth values, None. It holds what
the rows of the run do not say (counters, the order of draws); `restore` is given both.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import TuningError
from .candidate import Candidate, ProgramGraph
from .measurement import Measurement
from .task import Task

State = dict[str, Any]
"""JSON data."""


class Space(abc.ABC):
    """The schedules of some tasks. Seeds make it deterministic: equal seeds, equal candidates."""

    feature_set: str = ""
    """Name and version of what `features` returns; rows of another one are not mixed with it."""

    @abc.abstractmethod
    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` candidates drawn at random, without doubles; fewer where the space ends.

        Raises:
            TuningError: the task is not one of this space.
        """

    @abc.abstractmethod
    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [stores, f]: a row for each statement that writes, f fixed by the space.

        Raises:
            TuningError: the candidate cannot be scheduled.
        """

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a neighbour of a candidate, None where the change that was drawn is not legal."""
        raise TuningError(f"{type(self).__name__} has no neighbours; it cannot be evolved.")

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a child with decisions of both, None where the space or the pair has none."""
        return None

    def enumerate(self, task: Task) -> list[Candidate] | None:
        """Return all candidates of a task in a fixed order where they are few; otherwise None."""
        return None

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions as named numbers on a scale on which distance means something.

        Tile factors as log2, unroll steps, vector lengths, the index of a place. Candidates may
        have different names: a decision that one does not have is simply not there.
        """
        raise TuningError(f"{type(self).__name__} has no knobs.")

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the scheduled program as a graph.

        Raises:
            TuningError: the candidate cannot be scheduled, or the space makes no graphs.
        """
        raise TuningError(f"{type(self).__name__} makes no graphs of programs.")

    def features_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return `features` of many, None for those that cannot be scheduled.

        A space overrides it where many at once are cheaper (threads, a worker process).
        """
        found: list[np.ndarray | None] = []
        for each in candidates:
            try:
                found.append(self.features(each))
            except TuningError:
                found.append(None)
        return found


class CostModel(abc.ABC):
    """Predicts normalised throughput: 1 is as fast as the best of the task, 0 a failure."""

    @abc.abstractmethod
    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Learn anew from all rows that are given; rows of earlier calls are forgotten."""

    @abc.abstractmethod
    def predict(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the mean, float64 [n], higher is better, and the standard deviation or None.

        Before `fit` all means are equal. A candidate that cannot be scheduled gets -inf.
        """


class Tuner(abc.ABC):
    """Proposes candidates of tasks and learns from what became of them.

    A class of one's own takes `(space, *, seed=0, **options)`.
    """

    @abc.abstractmethod
    def propose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` candidates that were not proposed before; none: the task is exhausted.

        It may return fewer: a tuner of one trial returns one.
        """

    @abc.abstractmethod
    def observe(self, measurements: Sequence[Measurement]) -> None:
        """Learn from rows of one task, in the order in which they were measured."""

    @abc.abstractmethod
    def state(self) -> State:
        """Return what `restore` needs beside the rows, as JSON data."""

    @abc.abstractmethod
    def restore(self, state: State, measurements: Sequence[Measurement]) -> None:
        """Go on as if it had never stopped: `measurements` are all rows of the run, in order.

        Raises:
            TuningError: the state is not one of this tuner.
        """


class Slot(NamedTuple):
    """What an allocator gives away: a task and a number of trials."""

    task: Task
    trials: int


class TaskAllocator(abc.ABC):
    """Says which task gets the next trials. A class of one's own takes `(tasks, *, seed=0, …)`."""

    slot_trials: int = 1
    """Trials of one slot. A budget that does not give each task a slot is refused."""

    def reserve(self, trials_left: int) -> None:
        """Be told, before each `next`, how many trials the budget still has."""

    @abc.abstractmethod
    def next(self) -> Slot | None:
        """Return the next slot, None where every task was dropped."""

    @abc.abstractmethod
    def observe(self, task: Task, measurements: Sequence[Measurement]) -> None:
        """Learn from the rows of one slot."""

    @abc.abstractmethod
    def drop(self, task: Task) -> None:
        """Give the task no more slots: it is exhausted, or all of its candidates fail."""

    @abc.abstractmethod
    def state(self) -> State:
        """Return what `restore` needs, as JSON data."""

    @abc.abstractmethod
    def restore(self, state: State) -> None:
        """Go on from a state.

        Raises:
            TuningError: the state is of other tasks.
        """


class Measurer(abc.ABC):
    """Measures candidates: live in isolated workers, or by looking them up in a pool."""

    is_replay: bool = False
    """Whether time is charged as recorded (`trial_s` of each row) and not as it passes."""

    @abc.abstractmethod
    def measure(self, candidates: Sequence[Candidate]) -> Iterable[Measurement]:
        """Return a row for each candidate, in their order; a failure is a row too.

        It may be a generator that gives each row as soon as it is there: the loop keeps it at
        once, so that a kill loses only the candidate at work.
        """

    def close(self) -> None:
        """Let workers go."""

    def __enter__(self) -> Measurer:
        """Return itself; `close` is called at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let workers go."""
        self.close()


class Dispatcher(abc.ABC):
    """Chooses one of several configurations for each input."""

    @abc.abstractmethod
    def fit(
        self,
        inputs: np.ndarray,
        configs: Sequence[str],
        times: np.ndarray,
        feature_costs: np.ndarray,
    ) -> None:
        """Learn from training inputs.

        `inputs` are float [n, f] features; `times` [n, k] seconds of each configuration on each
        input, infinite where it fails or is not accurate enough; `feature_costs` [f] seconds that
        each feature takes to compute.

        Raises:
            TuningError: the arrays do not fit together.
        """

    @abc.abstractmethod
    def choose(self, features: np.ndarray) -> str:
        """Return the configuration for one input, float [f]; what it does not use may be NaN."""
