"""Tuning replayed on a pool of records: no machine, no compiler, the recorded times.

A replay answers only from the pool; a candidate outside of it is an error, never a near one. Hence
it serves tuners that choose among candidates. Whatever mutates or fills templates is run live.

Of each candidate's repetitions the first, third, fifth … are what a tuner is shown; the second,
fourth … score what it chose. A tuner that picks a candidate for one lucky repetition is so not
paid for it.
"""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..errors import ReplayError, TuningError
from .candidate import Candidate, Origin, ProgramGraph
from .interfaces import Measurer, Space
from .knobs import trace_knobs
from .measurement import Measurement
from .records import read_records
from .task import Task

MIN_REPETITIONS = 2


class Pool:
    """Records of tasks, found by task and trace.

    Of two records of one candidate the one with more repetitions is kept, then the earlier. Rows of
    tasks that are not given are left out and counted in `num_foreign`; rows that are ok with a
    single repetition, which cannot both be shown and score, in `num_single`.

    Raises:
        TuningError: no row is left.
    """

    def __init__(self, tasks: Iterable[Task], measurements: Iterable[Measurement]) -> None:
        self.tasks = {task.task_id: task for task in tasks}
        self.num_foreign = self.num_single = 0
        self._rows: dict[str, dict[str, Measurement]] = {task_id: {} for task_id in self.tasks}
        self._scores: dict[tuple[str, str], float] = {}
        self._best: dict[str, float] = {}
        for row in measurements:
            if row.task_id not in self.tasks:
                self.num_foreign += 1
                continue
            if row.is_ok and len(row.times_ms) < MIN_REPETITIONS:
                self.num_single += 1
                continue
            own = self._rows[row.task_id]
            key = row.trace_hash
            if key not in own or len(row.times_ms) > len(own[key].times_ms):
                own[key] = row
        self.tasks = {key: task for key, task in self.tasks.items() if self._rows[key]}
        if not self.tasks:
            raise TuningError(
                f"The pool has no record to replay: {self.num_foreign} are of tasks that are not "
                f"there, {self.num_single} have a single repetition. Record with two or more."
            )

    @classmethod
    def load(cls, dataset: str | os.PathLike[str]) -> Pool:
        """Read a pool from a dataset of tasks and records: a directory, a name, a repository.

        Raises:
            DatasetNotFoundError: there is none, or it has no tasks or records.
            TuningError: no row of it can be replayed.
        """
        found = read_records(dataset)
        return cls(found.tasks.values(), found.measurements)

    def rows(self, task: Task) -> list[Measurement]:
        """Return the records of a task in the order of the pool.

        Raises:
            ReplayError: the pool has none.
        """
        found = self._rows.get(task.task_id)
        if not found:
            raise ReplayError(f"The pool has no record of the task `{task.task_name}`.")
        return list(found.values())

    def hashes(self, task_id: str) -> list[str]:
        """Return the hashes of the candidates of a task, none where it is not in the pool."""
        return list(self._rows.get(task_id, ()))

    def find(self, task_id: str, trace_hash: str) -> Measurement:
        """Return the record of a candidate.

        Raises:
            ReplayError: there is none.
        """
        found = self._rows.get(task_id, {}).get(trace_hash)
        if found is None:
            raise ReplayError(
                f"The pool has no record of the candidate {trace_hash} of the task `{task_id}`. A "
                "replay only answers what was measured: let the tuner choose among the pool's "
                "candidates (`PoolSpace`), or run it live."
            )
        return found

    def score_ms(self, task_id: str, trace_hash: str) -> float:
        """Return the median of the repetitions that no tuner is shown; infinite for a failure."""
        found = self._scores.get((task_id, trace_hash))
        if found is None:
            row = self.find(task_id, trace_hash)
            found = statistics.median(row.times_ms[1::2]) if row.is_ok else math.inf
            self._scores[task_id, trace_hash] = found
        return found

    def best_score_ms(self, task: Task) -> float:
        """Return the least score of the task's candidates: the best that is known."""
        if task.task_id not in self._best:
            self._best[task.task_id] = min(
                self.score_ms(task.task_id, each.trace_hash) for each in self.rows(task)
            )
        return self._best[task.task_id]

    def median_score_ms(self, task: Task) -> float:
        """Return the median score of the candidates that are ok: what no tuning would give."""
        scores = [self.score_ms(task.task_id, each.trace_hash) for each in self.rows(task)]
        return statistics.median([each for each in scores if math.isfinite(each)] or [math.inf])


class PoolSpace(Space):
    """The pool's candidates as a space: finite, without neighbours.

    `knobs` reads the decisions out of a trace's text; `graphs` has the program graphs by
    `Candidate.key`, for models that need them.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        knobs: Callable[[str], Mapping[str, float]] = trace_knobs,
        graphs: Mapping[str, ProgramGraph] | None = None,
    ) -> None:
        self.pool = pool
        self._read_knobs = knobs
        self._graphs = graphs or {}
        sets = {row.feature_set for task in pool.tasks.values() for row in pool.rows(task)} - {""}
        if len(sets) > 1:
            raise TuningError(
                f"The pool's features are of {len(sets)} kinds, {', '.join(sorted(sets))}; they "
                "cannot be learned from together. Leave the rows of all but one out."
            )
        self.feature_set = next(iter(sets), "")

    def enumerate(self, task: Task) -> list[Candidate]:
        """Return all candidates of the task that the pool has."""
        return [
            Candidate(row.task_id, row.trace_json, Origin.RANDOM) for row in self.pool.rows(task)
        ]

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` of them, drawn without doubles."""
        everything = self.enumerate(task)
        order = np.random.default_rng(seed).permutation(len(everything))[:n]
        return [everything[index] for index in order]

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return the recorded features.

        Raises:
            TuningError: the record has none.
        """
        row = self.pool.find(candidate.task_id, candidate.trace_hash)
        if row.features is None:
            raise TuningError(f"The record of {candidate.trace_hash} has no features.")
        return row.features

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions that its trace's text holds."""
        return self._read_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the graph that was given for it.

        Raises:
            TuningError: none was.
        """
        found = self._graphs.get(candidate.key)
        if found is None:
            raise TuningError(f"No program graph was given for {candidate.key}.")
        return found


class ReplayMeasurer(Measurer):
    """Answers from a pool, with the repetitions 1, 3, 5 … only; time is charged as recorded."""

    is_replay = True

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def measure(self, candidates: Sequence[Candidate]) -> Iterator[Measurement]:
        """Give the record of each candidate, with the proposal's own origin and prediction.

        Raises:
            ReplayError: the pool has none of one of them; nothing is given then.
        """
        found = [self.pool.find(each.task_id, each.trace_hash) for each in candidates]
        return (
            dataclasses.replace(
                row,
                origin=candidate.origin,
                predicted=candidate.predicted,
                predicted_std=candidate.predicted_std,
                times_ms=row.times_ms[0::2],
            )
            for row, candidate in zip(found, candidates, strict=True)
        )
