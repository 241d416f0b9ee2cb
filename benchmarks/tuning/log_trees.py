"""Boosted trees on the logarithm of times: what the features made by hand give for ranking alone.

Ansor's model weighs programs by their throughput, so that it hardly learns to tell slow ones apart.
Against rank correlation over all programs that is a handicap; this is the same library on the same
features, summed and maximised over a program's statements, with the target that a graph network
has: the logarithm of the time less its mean over the task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xgboost

from graphnet_datasets.tuning import Candidate, CostModel, Measurement, Space, Task
from graphnet_datasets.tuning.models.pooling import pool_features


class LogTrees(CostModel):
    """Trees over pooled features; what it predicts ranks within a task and says nothing else."""

    def __init__(self, space: Space, *, seed: int = 0, rounds: int = 250) -> None:
        self.space, self.rounds = space, rounds
        self._parameters = {
            **{"max_depth": 8, "eta": 0.08, "subsample": 0.8, "colsample_bytree": 0.3},
            **{"nthread": 1, "tree_method": "hist", "max_bin": 128, "seed": seed},
        }
        self._booster: xgboost.Booster | None = None

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit to all rows that are ok."""
        rows = [row for row in measurements if row.is_ok]
        times = np.log([row.latency_ms for row in rows])
        _, task = np.unique([row.task_id for row in rows], return_inverse=True)
        means = np.bincount(task, weights=times) / np.bincount(task)
        data = xgboost.DMatrix(self._pooled([row.candidate for row in rows]), means[task] - times)
        self._booster = xgboost.train(self._parameters, data, self.rounds)

    def predict(
        self,
        task: Task,  # noqa: ARG002 - features tell of it
        candidates: Sequence[Candidate],
    ) -> tuple[np.ndarray, None]:
        """Return how much faster than the mean of the task, as a factor."""
        if self._booster is None:
            return np.zeros(len(candidates)), None
        found = self._booster.predict(xgboost.DMatrix(self._pooled(candidates)))
        return np.exp(found.astype(np.float64)), None

    def _pooled(self, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.stack([pool_features(self.space.features(each)) for each in candidates])
