"""What most tuners share: no candidate twice, random numbers by round, the rows of each task."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..interfaces import Space, State, Tuner
from ..measurement import Measurement
from ..task import Task

_MAX_EMPTY_DRAWS = 4
"""A space that gives nothing new so often in a row is taken to be exhausted."""


class MemoryTuner(Tuner):
    """A tuner whose whole memory is what it proposed, what was measured, and how often it drew.

    Random numbers come from `(seed, number of draws so far)`, never from a stream, so that the
    state is two numbers and some hashes. Who inherits writes `choose` and, where more is kept,
    `extra_state`.
    """

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self.space = space
        self.seed = seed
        self._draws = 0
        self._proposed: dict[str, dict[str, None]] = {}  # dictionaries keep the order
        self._rows: dict[str, list[Measurement]] = {}

    @abc.abstractmethod
    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` candidates; those that were proposed before are left out afterwards."""

    def propose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` candidates that were not proposed before."""
        if n < 1:
            raise TuningError(f"{n} candidates were asked for; ask for at least one.")
        proposed = self._proposed.setdefault(task.task_id, {})
        chosen = [each for each in self.choose(task, n) if each.trace_hash not in proposed]
        chosen = list({each.trace_hash: each for each in chosen}.values())[:n]
        proposed.update(dict.fromkeys(each.trace_hash for each in chosen))
        return chosen

    def observe(self, measurements: Sequence[Measurement]) -> None:
        """Keep the rows."""
        for each in measurements:
            self._rows.setdefault(each.task_id, []).append(each)

    def state(self) -> State:
        """Return the number of draws, the hashes of proposals and what the tuner adds."""
        return {
            "tuner": type(self).__name__,
            "seed": self.seed,
            "draws": self._draws,
            "proposed": {task_id: list(hashes) for task_id, hashes in self._proposed.items()},
            **self.extra_state(),
        }

    def extra_state(self) -> State:
        """Return what this tuner keeps beside proposals and rows."""
        return {}

    def restore(self, state: State, measurements: Sequence[Measurement]) -> None:
        """Take the state and the rows.

        Raises:
            TuningError: the state is of another tuner.
        """
        if state.get("tuner") != type(self).__name__:
            raise TuningError(
                f"The state is of the tuner `{state.get('tuner')}`, not of "
                f"`{type(self).__name__}`. Resume with the tuner that the run began with."
            )
        try:
            self.seed = int(state["seed"])
            self._draws = int(state["draws"])
            self._proposed = {
                str(task_id): dict.fromkeys(map(str, hashes))
                for task_id, hashes in state["proposed"].items()
            }
            self.restore_extra(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TuningError(
                f"The state of the tuner is broken: {type(error).__name__}: {error}. Start the "
                "run anew in another directory."
            ) from error
        self._rows = {}
        for each in measurements:
            self._rows.setdefault(each.task_id, []).append(each)

    def restore_extra(self, state: State) -> None:
        """Take what `extra_state` returned."""

    def rows_of(self, task: Task) -> list[Measurement]:
        """Return the measured rows of a task, in order."""
        return self._rows.get(task.task_id, [])

    def all_rows(self) -> list[Measurement]:
        """Return the measured rows of all tasks."""
        return list(itertools.chain.from_iterable(self._rows.values()))

    def is_proposed(self, candidate: Candidate) -> bool:
        """Tell whether a candidate was proposed before."""
        return candidate.trace_hash in self._proposed.get(candidate.task_id, {})

    def next_seed(self) -> int:
        """Return a seed for one draw, another one at each call."""
        self._draws += 1
        return int(np.random.SeedSequence([self.seed, self._draws]).generate_state(1)[0])

    def fresh(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` candidates that were not proposed: of a finite space all, in order."""
        found: dict[str, Candidate] = {}
        everything = self.space.enumerate(task)
        if everything is not None:
            rest = [each for each in everything if not self.is_proposed(each)]
            if len(rest) <= n:
                return rest
            rng = np.random.default_rng(self.next_seed())
            return [rest[index] for index in sorted(rng.choice(len(rest), n, replace=False))]
        empty = 0
        while len(found) < n and empty < _MAX_EMPTY_DRAWS:
            before = len(found)
            for each in self.space.sample(task, n - before, self.next_seed()):
                if not self.is_proposed(each):
                    found.setdefault(each.trace_hash, each)
            empty = empty + 1 if len(found) == before else 0
        return list(found.values())[:n]
