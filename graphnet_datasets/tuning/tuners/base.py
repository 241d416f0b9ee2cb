"""The base class of most tuners: unique proposals, reproducible seeds, and rows per task."""

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
"""A space counts as exhausted after this number of consecutive draws without a new candidate."""


class MemoryTuner(Tuner):
    """A tuner whose memory consists of its proposals, its measurements and its number of draws.

    Random numbers are derived from `(seed, number of draws)` instead of a stream, so that the state
    consists of two numbers and some hashes. Subclasses implement `choose` and, if they store more,
    `extra_state` and `restore_extra`.
    """

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self.space = space
        self.seed = seed
        self._draws = 0
        self._proposed: dict[str, dict[str, None]] = {}  # dictionaries as ordered sets
        self._rows: dict[str, list[Measurement]] = {}

    @abc.abstractmethod
    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` candidates; `propose` removes repeated ones."""

    def propose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` candidates that were not proposed before."""
        if n < 1:
            raise TuningError(f"`n` must be at least 1, got {n}.")
        proposed = self._proposed.setdefault(task.task_id, {})
        chosen = [
            candidate for candidate in self.choose(task, n) if candidate.trace_hash not in proposed
        ]
        chosen = list({candidate.trace_hash: candidate for candidate in chosen}.values())[:n]
        proposed.update(dict.fromkeys(candidate.trace_hash for candidate in chosen))
        return chosen

    def observe(self, measurements: Sequence[Measurement]) -> None:
        """Store the rows by task."""
        for row in measurements:
            self._rows.setdefault(row.task_id, []).append(row)

    def state(self) -> State:
        """Return the number of draws, the hashes of proposals and `extra_state`."""
        return {
            "tuner": type(self).__name__,
            "seed": self.seed,
            "draws": self._draws,
            "proposed": {task_id: list(hashes) for task_id, hashes in self._proposed.items()},
            **self.extra_state(),
        }

    def extra_state(self) -> State:
        """Return data of the subclass that must be stored in addition to proposals and rows."""
        return {}

    def restore(self, state: State, measurements: Sequence[Measurement]) -> None:
        """Restore a saved state and the rows of the run.

        Raises:
            TuningError: the state is invalid or belongs to another tuner.
        """
        if state.get("tuner") != type(self).__name__:
            raise TuningError(
                f"The state belongs to the tuner `{state.get('tuner')}`, not to "
                f"`{type(self).__name__}`. Resume with the tuner of the stopped run."
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
                f"The state of the tuner is invalid: {type(error).__name__}: {error}. Start over "
                "in another directory."
            ) from error
        self._rows = {}
        for row in measurements:
            self._rows.setdefault(row.task_id, []).append(row)

    def restore_extra(self, state: State) -> None:
        """Restore the data returned by `extra_state`."""

    def rows_of(self, task: Task) -> list[Measurement]:
        """Return the measured rows of a task, in order."""
        return self._rows.get(task.task_id, [])

    def all_rows(self) -> list[Measurement]:
        """Return the measured rows of all tasks."""
        return list(itertools.chain.from_iterable(self._rows.values()))

    def is_proposed(self, candidate: Candidate) -> bool:
        """Return whether a candidate was proposed before."""
        return candidate.trace_hash in self._proposed.get(candidate.task_id, {})

    def next_seed(self) -> int:
        """Return a new seed for one draw."""
        self._draws += 1
        return int(np.random.SeedSequence([self.seed, self._draws]).generate_state(1)[0])

    def fresh(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` unproposed candidates; keeps the order of a finite space if all fit."""
        fresh_candidates: dict[str, Candidate] = {}
        everything = self.space.enumerate(task)
        if everything is not None:
            remaining = [candidate for candidate in everything if not self.is_proposed(candidate)]
            if len(remaining) <= n:
                return remaining
            rng = np.random.default_rng(self.next_seed())
            return [
                remaining[index] for index in sorted(rng.choice(len(remaining), n, replace=False))
            ]
        num_empty_draws = 0
        while len(fresh_candidates) < n and num_empty_draws < _MAX_EMPTY_DRAWS:
            before = len(fresh_candidates)
            for candidate in self.space.sample(task, n - before, self.next_seed()):
                if not self.is_proposed(candidate):
                    fresh_candidates.setdefault(candidate.trace_hash, candidate)
            num_empty_draws = num_empty_draws + 1 if len(fresh_candidates) == before else 0
        return list(fresh_candidates.values())[:n]
