"""Ansor's cost model: boosted trees over statements, summed over a program.

Zheng et al., "Ansor", OSDI 2020, section 5.2. A program P is the set S(P) of its store statements,
and f scores a statement. The score of a program is the sum over its statements, and training
minimises

    loss = y * (sum_{s in S(P)} f(s) - y)^2

where y is the normalised throughput, so that fast programs have the largest weight. The model is
refitted in each round.

Differences from the paper: the Hessian of a program's loss is the full block 2 y * ones. Here its
diagonal bound 2 y * (number of statements) is used, which never overshoots. Failures have y = 0 and
thus no weight in the paper; here each program has at least the weight `least_weight`, so that the
model also learns from failures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import MissingExtraError
from ..candidate import Candidate
from ..interfaces import CostModel, Space
from ..measurement import Measurement, normalised_throughput
from ..task import Task
from .pooling import features_of_rows


class GbdtModel(CostModel):
    """Boosted trees over statements. An unfitted model predicts zeros.

    Raises:
        MissingExtraError: xgboost is not installed.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        rounds: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.2,
        least_weight: float = 0.05,
        num_threads: int = 1,
    ) -> None:
        self.space = space
        self.rounds = rounds
        self.least_weight = least_weight
        self._parameters: dict[str, Any] = {
            "max_depth": max_depth,
            "eta": learning_rate,
            "min_child_weight": 0.0,
            "gamma": 0.0,
            "lambda": 1e-3,
            "base_score": 0.0,
            "nthread": num_threads,
            "seed": seed,
            "tree_method": "hist",
            "disable_default_eval_metric": True,
        }
        self._booster: Any = None
        self._xgboost = import_xgboost()

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit trees to all rows with features; without such rows the model predicts zeros."""
        features = features_of_rows(self.space, measurements)
        valid = [i for i, matrix in enumerate(features) if matrix is not None and len(matrix)]
        self._booster = None
        if not valid:
            return
        stacked, program = _stack([features[i] for i in valid])
        labels = normalised_throughput([measurements[i] for i in valid])
        weights = np.maximum(labels, self.least_weight)
        counts = np.bincount(program, minlength=len(valid))

        def objective(predicted: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
            score = np.bincount(program, weights=predicted, minlength=len(valid))
            slope = 2 * weights * (score - labels)
            return slope[program], (2 * weights * counts)[program]

        self._booster = self._xgboost.train(
            self._parameters, self._xgboost.DMatrix(stacked), self.rounds, obj=objective
        )

    def predict(
        self,
        task: Task,  # noqa: ARG002 - the features describe the task
        candidates: Sequence[Candidate],
    ) -> tuple[np.ndarray, None]:
        """Return scores, about 1 for a program as fast as the task's best."""
        features = self.space.features_of(candidates)
        means = np.array([-np.inf if matrix is None else 0.0 for matrix in features])
        valid = np.flatnonzero(np.isfinite(means))
        if self._booster is None or not len(valid):
            return means, None
        stacked, program = _stack([features[i] for i in valid])
        scores = self._booster.predict(self._xgboost.DMatrix(stacked))
        means[valid] = np.bincount(program, weights=scores, minlength=len(valid))
        return means, None


def _stack(features: Sequence[np.ndarray | None]) -> tuple[np.ndarray, np.ndarray]:
    """Return all statements, float32 [statements, f], and the program index of each statement."""
    arrays = [matrix for matrix in features if matrix is not None]
    program = np.repeat(np.arange(len(arrays)), [len(matrix) for matrix in arrays])
    return np.concatenate(arrays).astype(np.float32, copy=False), program


def import_xgboost() -> Any:
    """Return the module `xgboost`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError("xgboost", "tuning", "A model of boosted trees") from error
    return xgboost
