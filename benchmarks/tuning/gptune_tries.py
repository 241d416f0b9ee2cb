"""Tries of GPTune's model: trials of one process for a group of tasks over those of one each.

    python benchmarks/tuning/gptune_tries.py POOL --seeds 5 --half 0 --groups 4

A line per setting: the kernel over knobs, how many first trials are drawn at random, whether
program features stand beside knobs, a correlation of tasks that is fixed. Parameters are the most
likely ones of a grid. Both processes have the same setting; the single ones have no correlation.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from replaying import show
from scipy.spatial.distance import cdist
from trying import Choices, arguments_of, load, matern, squared_exponential, standardised

from graphnet_datasets.tuning.models.gp import REFIT_GROWTH
from graphnet_datasets.tuning.tuners.gptune import believed_best

CAP, SLOT = 48, 2
CENTRE_VARIANCE = 0.3


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is tried: `features` is "none", "all" or "centred" (less the mean of their task)."""

    kernel: Callable[[np.ndarray], np.ndarray] = matern
    initial: int = 6
    features: str = "none"
    correlations: tuple[float, ...] = (0.0, 0.5, 0.8, 0.95)
    lengths: tuple[float, ...] = (0.5, 1.0, 2.0)
    noises: tuple[float, ...] = (0.02, 0.1)


SETTINGS = {
    "squared exponential": Setting(kernel=squared_exponential),
    "matern": Setting(),
    "four first trials": Setting(initial=4),
    "two first trials": Setting(initial=2),
    "correlation 0.9": Setting(correlations=(0.9,)),
    "features": Setting(features="all"),
    "features centred": Setting(features="centred"),
    "features centred, two first trials": Setting(features="centred", initial=2),
}


def groups_of(tasks: Sequence[Choices], size: int) -> list[list[Choices]]:
    """Return groups of one family, neighbours in flops."""
    by_family: dict[str, list[Choices]] = {}
    for each in sorted(tasks, key=lambda each: (each.task.flops, each.task.task_id)):
        by_family.setdefault(each.task.family, []).append(each)
    return [
        own[start : start + size]
        for own in by_family.values()
        for start in range(0, len(own) - size + 1, size)
    ]


def points_of(group: Sequence[Choices], features: str) -> np.ndarray:
    """Return the candidates of all tasks, one after another."""
    names = sorted({name for each in group for knobs in each.knobs for name in knobs})
    knobs = np.array([[k.get(name, 0.0) for name in names] for each in group for k in each.knobs])
    if features == "none":
        spread = np.ptp(knobs, axis=0)
        return (knobs - knobs.min(axis=0))[:, spread > 0] / spread[spread > 0]
    centred = features == "centred"
    parts = [e.features - e.features.mean(axis=0) if centred else e.features for e in group]
    return np.concatenate([standardised(knobs), 0.7 * standardised(np.concatenate(parts))], axis=1)


class Process:
    """A process over the measured candidates of all tasks of a group."""

    def __init__(self, group: Sequence[Choices], setting: Setting) -> None:
        points = points_of(group, setting.features)
        distance = cdist(points, points)
        self.distance = distance / np.median(distance)
        self.tasks = np.concatenate([np.full(each.count, i) for i, each in enumerate(group)])
        self.logs = np.concatenate([each.log_times for each in group])
        self.setting = setting
        self._at, self._best = 0, (1.0, 0.0, 0.1)

    def covariance(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return it between candidates, with the parameters that are the most likely."""
        return self._covariance(rows, columns, *self._best[:2])

    def _covariance(
        self, rows: np.ndarray, columns: np.ndarray, length: float, correlation: float
    ) -> np.ndarray:
        kernel = self.setting.kernel(self.distance[np.ix_(rows, columns)] / length)
        same = self.tasks[rows][:, None] == self.tasks[columns]
        return kernel * (correlation + (1 - correlation) * same) + CENTRE_VARIANCE * same

    def posterior(
        self, measured: np.ndarray, left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean and covariance of what is left, and the scaled times that were measured."""
        of_task = self.tasks[measured]
        counts = np.bincount(of_task)
        y = (
            self.logs[measured]
            - (np.bincount(of_task, self.logs[measured]) / counts.clip(1))[of_task]
        )
        y = y / (np.sqrt(y @ y / max(len(y) - (counts > 0).sum(), 1)) or 1.0)
        if len(y) >= REFIT_GROWTH * self._at:
            grid = itertools.product(
                self.setting.lengths, self.setting.correlations, self.setting.noises
            )
            self._best = max(grid, key=lambda each: self._likelihood(measured, y, *each))
            self._at = len(y)
        inner = self.covariance(measured, measured) + self._best[2] * np.eye(len(y))
        cross = self.covariance(measured, left)
        solved = np.linalg.solve(inner, np.column_stack([cross, y]))
        own = self.covariance(left, left)
        return cross.T @ solved[:, -1], own - cross.T @ solved[:, :-1], y

    def _likelihood(
        self, rows: np.ndarray, y: np.ndarray, length: float, correlation: float, noise: float
    ) -> float:
        covariance = self._covariance(rows, rows, length, correlation) + noise * np.eye(len(y))
        factor = np.linalg.cholesky(covariance)
        half = np.linalg.solve(factor, y)
        return float(-0.5 * half @ half - np.log(np.diag(factor)).sum())


def trials(group: Sequence[Choices], setting: Setting, seed: int) -> list[int]:
    """Return the trials of each task until it is near its best, CAP + 1 where it never was."""
    process = Process(group, setting)
    shown = np.concatenate([each.shown_ms for each in group])
    is_near = np.concatenate([each.is_near for each in group])
    measured: list[list[int]] = [[] for _ in group]
    best, found = [np.inf] * len(group), [0] * len(group)
    while not all(found):
        for number, each in enumerate(group):
            own = measured[number]
            if len(own) >= CAP:
                found[number] = found[number] or CAP + 1
                continue
            left = np.setdiff1d(np.flatnonzero(process.tasks == number), own)
            if len(own) < setting.initial:
                drawn = each.rng(seed, len(own)).permutation(left)
                chosen = drawn[: min(SLOT, setting.initial - len(own))]
            else:
                rows = np.concatenate([np.array(own_rows, int) for own_rows in measured])
                mean, covariance, y = process.posterior(rows, left)
                least = float(y[process.tasks[rows] == number].min())
                chosen = left[believed_best(mean, covariance, least, SLOT)]
            for index in chosen:
                own.append(int(index))
                if shown[index] < best[number]:
                    best[number] = shown[index]
                    if is_near[index] and not found[number]:
                        found[number] = len(own)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Replay every setting."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--groups", type=int, default=4)
    size, rest = own.parse_known_args(argv)
    given = arguments_of(__doc__ or "", rest)
    groups = groups_of(load(given), size.groups)
    for name, setting in SETTINGS.items():
        alone = dataclasses.replace(setting, correlations=(0.0,))
        found = np.array(
            [
                [
                    (
                        sum(trials(group, setting, seed)),
                        sum(trials([each], alone, seed)[0] for each in group),
                    )
                    for seed in range(given.seeds)
                ]
                for group in groups
            ],
            float,
        )
        shared, single = found[..., 0], found[..., 1]
        show(
            "gptune-tries",
            setting=name,
            tasks=size.groups,
            seeds=given.seeds,
            shared=shared.mean() / size.groups,
            single=single.mean() / size.groups,
            shared_over_single=shared.sum() / single.sum(),
            families=[group[0].task.family for group in groups],
            by_group=list(shared.sum(axis=1) / single.sum(axis=1)),
        )


if __name__ == "__main__":
    main()
