"""What tries of tuners share: the pool as arrays, its halves, a Gaussian process in numpy.

A try replays without the loop, the rows and the states of a run, in a fiftieth of the time: it
shows which setting is worth the full experiment. Times that a tuner is shown and those that score
are those of `graphnet_datasets.tuning.replay`.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from replaying import with_choice

from graphnet_datasets.tuning import Pool, PoolSpace, Task
from graphnet_datasets.tuning.models.pooling import pool_features

SHARE = 0.95
CAP = 128


@dataclasses.dataclass(frozen=True, eq=False)
class Choices:
    """The candidates of a task: `shown_ms` and `score_ms` are infinite where one failed."""

    task: Task
    knobs: list[dict[str, float]]
    features: np.ndarray
    shown_ms: np.ndarray
    score_ms: np.ndarray
    trial_s: np.ndarray

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.shown_ms)

    @property
    def half(self) -> int:
        """0 or 1, by a hash of the task: settings are chosen on 0."""
        digest = hashlib.blake2b(self.task.task_id.encode(), digest_size=4).hexdigest()
        return int(digest, 16) % 2

    @property
    def log_times(self) -> np.ndarray:
        """Log of what is shown; a failure counts as twice the slowest."""
        is_ok = np.isfinite(self.shown_ms)
        return np.log(np.where(is_ok, self.shown_ms, 2 * self.shown_ms[is_ok].max()))

    @property
    def is_near(self) -> np.ndarray:
        """Which are within 5 % of the best."""
        return self.score_ms <= self.score_ms.min() / SHARE

    def rng(self, seed: int, *more: int) -> np.random.Generator:
        """Return random numbers of the task and a seed."""
        return np.random.default_rng([seed, sum(map(ord, self.task.task_id)), *more])

    def knob_columns(self) -> np.ndarray:
        """Return the knobs that vary, float64 [n, k], unscaled."""
        names = sorted({name for each in self.knobs for name in each})
        found = np.array([[each.get(name, 0.0) for name in names] for each in self.knobs])
        return found[:, np.ptp(found, axis=0) > 0]


def arguments_of(text: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of a script of tries."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("pool", type=Path, help="a dataset with tuning_tasks and tuning_records")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the tasks; all without it")
    parser.add_argument("--min-candidates", type=int, default=100)
    return parser.parse_args(argv)


def load(given: argparse.Namespace) -> list[Choices]:
    """Return the tasks of a half, or all, most flops first."""
    pool = Pool.load(given.pool)
    space = PoolSpace(pool)
    found = []
    for task in with_choice(pool, given.min_candidates):
        rows = pool.rows(task)
        found.append(
            Choices(
                task,
                [dict(space.knobs(each)) for each in space.enumerate(task)],
                np.stack([pool_features(space.features(row.candidate)) for row in rows]),
                np.array(
                    [np.median(row.times_ms[0::2]) if row.is_ok else math.inf for row in rows]
                ),
                np.array([pool.score_ms(task.task_id, row.trace_hash) for row in rows]),
                np.array([row.trial_s or 0.0 for row in rows]),
            )
        )
    return [each for each in found if given.half in (None, each.half)]


def standardised(columns: np.ndarray) -> np.ndarray:
    """Return the columns that vary with mean 0, the squares of a row summing to 1 on average."""
    kept = columns[:, np.ptp(columns, axis=0) > 1e-6].astype(np.float64)
    return (kept - kept.mean(axis=0)) / kept.std(axis=0) / math.sqrt(max(kept.shape[1], 1))


def matern(distance: np.ndarray) -> np.ndarray:
    """Return the kernel with nu = 5/2 of distances in lengths."""
    scaled = math.sqrt(5) * distance
    return (1 + scaled + scaled**2 / 3) * np.exp(-scaled)


def squared_exponential(distance: np.ndarray) -> np.ndarray:
    """Return the kernel of distances in lengths."""
    return np.exp(-0.5 * distance**2)


def trials_to_near(choices: Choices, order: Sequence[int]) -> int | None:
    """Return after how many trials what looks fastest is near the best; None if it never is."""
    shown = math.inf
    for number, index in enumerate(order, 1):
        if choices.shown_ms[index] < shown:
            shown = choices.shown_ms[index]
            if choices.is_near[index]:
                return number
    return None
