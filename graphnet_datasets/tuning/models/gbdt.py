"""Ansor's cost model: boosted trees over statements, summed over a program.

Zheng et al., "Ansor", OSDI 2020, section 5.2: a program P is its statements that store, f scores a
statement, the program's score is the sum over its statements, and training minimises

    loss = y * (sum_{s in S(P)} f(s) - y)^2

with y the normalised throughput, so that fast programs weigh most. It is fitted anew each round.

Ours: the Hessian of a program's loss is the full block 2 y * ones; its diagonal bound
2 y * (number of statements) is used, with which a step never overshoots. Failures have y = 0 and so
no weight in the paper; here each program weighs at least `least_weight`, or else nothing is learned
of what fails.
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
    """Boosted trees over statements. Not fitted it predicts zeros.

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
        self._xgboost = _import_xgboost()

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit trees to all rows that have features; without any it predicts zeros."""
        features = features_of_rows(self.space, measurements)
        kept = [i for i, each in enumerate(features) if each is not None and len(each)]
        self._booster = None
        if not kept:
            return
        stacked, program = _stack([features[i] for i in kept])
        labels = normalised_throughput([measurements[i] for i in kept])
        weights = np.maximum(labels, self.least_weight)
        counts = np.bincount(program, minlength=len(kept))

        def objective(predicted: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
            score = np.bincount(program, weights=predicted, minlength=len(kept))
            slope = 2 * weights * (score - labels)
            return slope[program], (2 * weights * counts)[program]

        self._booster = self._xgboost.train(
            self._parameters, self._xgboost.DMatrix(stacked), self.rounds, obj=objective
        )

    def predict(
        self,
        task: Task,  # noqa: ARG002 - features tell of it
        candidates: Sequence[Candidate],
    ) -> tuple[np.ndarray, None]:
        """Return scores, about 1 for a program as fast as the best of its task."""
        features = self.space.features_of(candidates)
        means = np.array([-np.inf if each is None else 0.0 for each in features])
        kept = np.flatnonzero(np.isfinite(means))
        if self._booster is None or not len(kept):
            return means, None
        stacked, program = _stack([features[i] for i in kept])
        scores = self._booster.predict(self._xgboost.DMatrix(stacked))
        means[kept] = np.bincount(program, weights=scores, minlength=len(kept))
        return means, None


def _stack(features: Sequence[np.ndarray | None]) -> tuple[np.ndarray, np.ndarray]:
    """Return all statements, float32 [statements, f], and the program that each is of."""
    arrays = [each for each in features if each is not None]
    program = np.repeat(np.arange(len(arrays)), [len(each) for each in arrays])
    return np.concatenate(arrays).astype(np.float32, copy=False), program


def _import_xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError("xgboost", "tuning", "A model of boosted trees") from error
    return xgboost
