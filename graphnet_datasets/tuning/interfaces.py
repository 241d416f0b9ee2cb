"""Base classes of a tuning run, shared by all tuning systems.

    task, trials = allocator.next()
    rows = measurer.measure(tuner.propose(task, trials))
    tuner.observe(rows); allocator.observe(task, rows)

A tuning system implements one or several of these classes, and the loop uses nothing else of it.
Only `Space` may depend on a compiler, so that all other parts can be tested on a small numeric
space.

A state is plain JSON data: dictionaries, lists, strings, numbers, booleans and None. It contains
only data that the rows of the run lack (counters, the order of draws); `restore` receives both.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..errors import TuningError
from .candidate import Candidate, ProgramGraph
from .measurement import Measurement
from .task import Task

State = dict[str, Any]
"""JSON data."""


class Space(abc.ABC):
    """The schedules of some tasks, sampled deterministically: equal seeds draw equal candidates."""

    feature_set: str = ""
    """Name and version of the features; rows of different feature sets are not mixed."""

    machine_code_set: str = ""
    """Name and version of the features of machine code, "" if the space computes none."""

    @abc.abstractmethod
    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` distinct candidates drawn at random; fewer if the space has fewer.

        Raises:
            TuningError: the task does not belong to this space.
        """

    def add(self, task: Task) -> None:
        """Register a task, as `sample` does, before its candidates are passed to other methods.

        Raises:
            TuningError: the task does not belong to this space.
        """

    @abc.abstractmethod
    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [stores, f]: a row per store statement, with f fixed by the space.

        Raises:
            TuningError: the candidate cannot be scheduled.
        """

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a neighbour of a candidate, or None if the drawn change is not legal."""
        raise TuningError(
            f"`{type(self).__name__}` does not implement `mutate`. Choose a tuner that does not "
            "evolve candidates, such as `random`."
        )

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a child that combines decisions of both, or None if they cannot be combined."""
        return None

    def enumerate(self, task: Task) -> list[Candidate] | None:
        """Return all candidates of a task in a fixed order, or None if there are too many."""
        return None

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions as named numbers on scales suited to computing distances.

        Tile sizes are log2; unroll steps, vector lengths and location indices are plain numbers.
        Names may differ between candidates: a decision that a candidate lacks is left out.
        """
        raise TuningError(
            f"`{type(self).__name__}` does not implement `knobs`. Choose a tuner that does not "
            "need them, such as `random`."
        )

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the scheduled program as a graph.

        Raises:
            TuningError: the candidate cannot be scheduled, or the space makes no graphs.
        """
        raise TuningError(
            f"`{type(self).__name__}` does not implement `graph`. Choose a cost model that does "
            "not learn from program graphs."
        )

    def machine_code(self, candidate: Candidate) -> np.ndarray:
        """Return the features of the compiled program, float32 [n], without running it.

        Raises:
            TuningError: the candidate cannot be compiled, or the space compiles none.
        """
        raise TuningError(
            f"`{type(self).__name__}` does not implement `machine_code`. Choose a cost model that "
            "does not learn from machine code."
        )

    def features_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return `features` of several candidates, with None for those that cannot be scheduled.

        Override this method if a batch is cheaper (threads, a worker process).
        """
        return [_or_none(self.features, candidate) for candidate in candidates]

    def machine_code_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return `machine_code` of several candidates, with None for those that do not compile."""
        return [_or_none(self.machine_code, candidate) for candidate in candidates]


def _or_none(
    features_of: Callable[[Candidate], np.ndarray], candidate: Candidate
) -> np.ndarray | None:
    try:
        return features_of(candidate)
    except TuningError:
        return None


class CostModel(abc.ABC):
    """A model of normalised throughput: 1 for the task's fastest candidate, 0 for a failure."""

    @abc.abstractmethod
    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit from scratch on these rows; rows of earlier calls are forgotten."""

    @abc.abstractmethod
    def predict(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the mean, float64 [n], higher is better, and the standard deviation or None.

        Before `fit` all means are equal. The mean of an unschedulable candidate is -inf.
        """


class Tuner(abc.ABC):
    """A search strategy that proposes candidates and learns from their measurements.

    The constructor of a subclass takes `(space, *, seed=0, **options)`.
    """

    @abc.abstractmethod
    def propose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` new candidates; an empty list means that the task is exhausted.

        A tuner may return fewer than `n`: a one-shot tuner returns a single candidate.
        """

    @abc.abstractmethod
    def observe(self, measurements: Sequence[Measurement]) -> None:
        """Learn from rows of one task, in order of measurement."""

    @abc.abstractmethod
    def state(self) -> State:
        """Return the JSON data that `restore` needs in addition to the rows."""

    @abc.abstractmethod
    def restore(self, state: State, measurements: Sequence[Measurement]) -> None:
        """Continue a stopped run; `measurements` are all rows of the run, in order.

        Raises:
            TuningError: the state was not written by this kind of tuner.
        """


class Slot(NamedTuple):
    """A task and the number of trials that an allocator assigns to it."""

    task: Task
    trials: int


class TaskAllocator(abc.ABC):
    """A policy that decides which task gets the next trials.

    The constructor of a subclass takes `(tasks, *, seed=0, **options)`.
    """

    slot_trials: int = 1
    """Trials per slot. A budget too small for one slot per task is rejected."""

    def reserve(self, trials_left: int) -> None:
        """Receive the number of trials left in the budget; called before each `next`."""

    @abc.abstractmethod
    def next(self) -> Slot | None:
        """Return the next slot, or None if every task was dropped."""

    @abc.abstractmethod
    def observe(self, task: Task, measurements: Sequence[Measurement]) -> None:
        """Learn from the rows of one slot."""

    @abc.abstractmethod
    def drop(self, task: Task) -> None:
        """Assign no more slots to a task that is exhausted or whose candidates all fail."""

    @abc.abstractmethod
    def state(self) -> State:
        """Return the JSON data that `restore` needs."""

    @abc.abstractmethod
    def restore(self, state: State) -> None:
        """Continue from a state.

        Raises:
            TuningError: the state belongs to other tasks.
        """


class Measurer(abc.ABC):
    """A source of measurements: live in isolated workers, or looked up in a pool of records."""

    is_replay: bool = False
    """Whether the budget is charged the recorded time (`trial_s`) instead of elapsed time."""

    @abc.abstractmethod
    def measure(self, candidates: Sequence[Candidate]) -> Iterable[Measurement]:
        """Return a row for each candidate, in the same order; failures are rows too.

        An implementation may be a generator that yields each row when it is measured: the loop
        stores a row at once, so that a killed run loses only the candidate being measured.
        """

    def close(self) -> None:
        """Stop the workers."""

    def __enter__(self) -> Self:
        """Return the measurer itself; `close` is called on exit."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the workers."""
        self.close()


class Dispatcher(abc.ABC):
    """A rule that chooses one of several configurations for each input."""

    @abc.abstractmethod
    def fit(
        self,
        inputs: np.ndarray,
        configs: Sequence[str],
        times: np.ndarray,
        feature_costs: np.ndarray,
    ) -> None:
        """Learn from training inputs.

        `inputs` are float [n, f] features. `times` are [n, k] seconds of each configuration on each
        input, infinite for failures and inaccurate results. `feature_costs` are [f] seconds to
        compute each feature.

        Raises:
            TuningError: the shapes of the arrays do not match.
        """

    @abc.abstractmethod
    def choose(self, features: np.ndarray) -> str:
        """Return the configuration for one input, float [f]; unused features may be NaN."""
