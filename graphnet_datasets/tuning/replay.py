"""Tuning replayed from a pool of records, without a machine or compiler.

A replay answers only from the pool: a candidate outside the pool is an error, never approximated by
a similar one. Replay therefore suits tuners that choose among candidates; run tuners that mutate or
fill templates live.

The tuner sees the first, third, fifth … repetition of each candidate; the second, fourth …
score its choice. A tuner therefore gains nothing from choosing a candidate for one lucky
repetition.
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
    """Records of tasks, indexed by task and trace.

    Of two records of the same candidate, the one with more repetitions is used, or the earlier of
    equals. `num_foreign` counts skipped rows of unknown tasks; `num_single` counts skipped ok rows
    with a single repetition, which cannot be both shown and scored.

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
                f"The pool has no record to replay: {self.num_foreign} belong to unknown tasks, "
                f"{self.num_single} have a single repetition. Record at least two repetitions."
            )

    @classmethod
    def load(cls, dataset: str | os.PathLike[str]) -> Pool:
        """Read a pool from a dataset of tasks and records: a directory, name or Hub repository.

        Raises:
            DatasetNotFoundError: the dataset does not exist, or has no tasks or records.
            TuningError: none of its rows can be replayed.
        """
        tuning_records = read_records(dataset)
        return cls(tuning_records.tasks.values(), tuning_records.measurements)

    def rows(self, task: Task) -> list[Measurement]:
        """Return the records of a task in the order of the pool.

        Raises:
            ReplayError: the pool has no record of the task.
        """
        rows = self._rows.get(task.task_id)
        if not rows:
            raise ReplayError(
                f"The pool has no record of the task `{task.task_name}`. Choose from `pool.tasks`."
            )
        return list(rows.values())

    def hashes(self, task_id: str) -> list[str]:
        """Return the hashes of a task's candidates, empty if the task is not in the pool."""
        return list(self._rows.get(task_id, ()))

    def find(self, task_id: str, trace_hash: str) -> Measurement:
        """Return the record of a candidate.

        Raises:
            ReplayError: the pool has no record of the candidate.
        """
        row = self._rows.get(task_id, {}).get(trace_hash)
        if row is None:
            raise ReplayError(
                f"The pool has no record of the candidate {trace_hash} of the task `{task_id}`. "
                "Let the tuner choose among the pool's candidates (`PoolSpace`), or run it live."
            )
        return row

    def score_ms(self, task_id: str, trace_hash: str) -> float:
        """Return the median of the repetitions hidden from tuners; infinite for a failure."""
        score = self._scores.get((task_id, trace_hash))
        if score is None:
            row = self.find(task_id, trace_hash)
            score = statistics.median(row.times_ms[1::2]) if row.is_ok else math.inf
            self._scores[task_id, trace_hash] = score
        return score

    def best_score_ms(self, task: Task) -> float:
        """Return the lowest score of the task's candidates."""
        if task.task_id not in self._best:
            self._best[task.task_id] = min(
                self.score_ms(task.task_id, row.trace_hash) for row in self.rows(task)
            )
        return self._best[task.task_id]

    def median_score_ms(self, task: Task) -> float:
        """Return the median score of the successful candidates, a baseline without tuning."""
        scores = [self.score_ms(task.task_id, row.trace_hash) for row in self.rows(task)]
        return statistics.median([score for score in scores if math.isfinite(score)] or [math.inf])


class PoolSpace(Space):
    """The pool's candidates as a finite space without neighbours.

    `knobs` extracts the decisions from a trace's JSON; `graphs` maps `Candidate.key` to program
    graphs, for models that need them.
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
                f"The pool mixes {len(sets)} feature sets: {', '.join(sorted(sets))}. Build it "
                "from rows of a single feature set."
            )
        self.feature_set = next(iter(sets), "")
        codes = {row.machine_code_set for task in pool.tasks.values() for row in pool.rows(task)}
        self.machine_code_set = max(codes)  # "" without any; of several sets, one is used

    def enumerate(self, task: Task) -> list[Candidate]:
        """Return all candidates of the task in the pool."""
        return [
            Candidate(row.task_id, row.trace_json, Origin.RANDOM) for row in self.pool.rows(task)
        ]

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` distinct candidates, drawn at random."""
        everything = self.enumerate(task)
        order = np.random.default_rng(seed).permutation(len(everything))[:n]
        return [everything[index] for index in order]

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return the recorded features.

        Raises:
            TuningError: the record has no features.
        """
        row = self.pool.find(candidate.task_id, candidate.trace_hash)
        if row.features is None:
            raise TuningError(
                f"The record of the candidate {candidate.trace_hash} has no features. Record with "
                "features, or use a tuner that does not need them."
            )
        return row.features

    def machine_code(self, candidate: Candidate) -> np.ndarray:
        """Return the recorded features of machine code.

        Raises:
            TuningError: the record lacks features of the pool's set.
        """
        row = self.pool.find(candidate.task_id, candidate.trace_hash)
        if row.machine_code is None or row.machine_code_set != self.machine_code_set:
            raise TuningError(
                f"The record of the candidate {candidate.trace_hash} has no features of machine "
                "code. Record with this version, or choose another cost model."
            )
        return row.machine_code

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions in its trace."""
        return self._read_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the graph of a candidate from the constructor's `graphs`.

        Raises:
            TuningError: `graphs` does not contain the candidate.
        """
        graph = self._graphs.get(candidate.key)
        if graph is None:
            raise TuningError(
                f"`graphs` has no program graph of the candidate {candidate.key}. Pass one to "
                "`PoolSpace`."
            )
        return graph


class ReplayMeasurer(Measurer):
    """A measurer that looks up repetitions 1, 3, 5 … in a pool and charges the recorded time."""

    is_replay = True

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def measure(self, candidates: Sequence[Candidate]) -> Iterator[Measurement]:
        """Return an iterator over the records, with each proposal's own origin and prediction.

        Raises:
            ReplayError: the pool lacks one of the candidates; no record is returned then.
        """
        rows = [self.pool.find(candidate.task_id, candidate.trace_hash) for candidate in candidates]
        return (
            dataclasses.replace(
                row,
                origin=candidate.origin,
                predicted=candidate.predicted,
                predicted_std=candidate.predicted_std,
                times_ms=row.times_ms[0::2],
            )
            for row, candidate in zip(rows, candidates, strict=True)
        )
