"""ALT: active learning that alternates between informative and fast candidates.

"ALT: Optimizing Tensor Compilation in Deep Learning Compilers with Active Learning", 2020. Only the
abstract was available: a score predictor, an uncertainty predictor that estimates the error of the
score on unmeasured candidates, and a ping-pong between the two. The steps below are our own.

1. The score predictor S is a forest fitted to the log times of the task's measured rows.
2. The uncertainty predictor U learns |y - S(x)| on rows that S had not seen at prediction time:
   each batch is predicted before S is fitted to it. With fewer than `MIN_ERRORS` such rows, U is
   the standard deviation of S's trees.
3. In a U-phase the batch is diverse and possibly fast: of the `BREADTH` n candidates with the
   lowest S - `HOPE` U it takes those farthest from the measured candidates and from each other
   (k-centre). Uncertain candidates that are surely slow reveal little about fast ones. In an
   S-phase the batch is the best by S, with a random share epsilon.
4. Tuning starts with a U-phase. A U-phase ends when S's error on its batches stops falling, since
   further batches would not improve S. An S-phase ends when S's error rises, since S is then
   extrapolating.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import MissingExtraError, TuningError
from ..candidate import Candidate, Origin
from ..interfaces import Space, State
from ..measurement import Measurement
from ..models.pooling import features_of_rows, pool_features
from ..task import Task
from .base import MemoryTuner

MIN_ERRORS = 16
BREADTH = 4
HOPE = 1.0
"""Number of uncertainties subtracted from S to rank candidates in a U-phase."""
_RISE = 1.1
"""Factor by which an error must grow to count as risen, since batches of eight are noisy."""


class AltTuner(MemoryTuner):
    """Active learning in turns: batches of diverse, possibly fast candidates, then of fast ones.

    `phases` is "ping-pong" or, for comparison, "score" (greedy on S), "uncertainty" (U-phases only)
    or "bound" (greedy on S minus the deviation of its trees).

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        phases: str = "ping-pong",
        epsilon: float = 0.05,
        pool_size: int = 512,
        trees: int = 64,
    ) -> None:
        super().__init__(space, seed=seed)
        if phases not in ("ping-pong", "score", "uncertainty", "bound"):
            raise TuningError(
                f"`phases` must be `ping-pong`, `score`, `uncertainty` or `bound`, got `{phases}`."
            )
        self.phases, self.epsilon, self.pool_size, self.trees = phases, epsilon, pool_size, trees
        self._tree = _import_tree()
        self._predicted: dict[str, dict[str, float]] = {}
        """By task and trace: S's prediction for the current batch, in log ms."""
        self._errors: dict[str, dict[str, float]] = {}
        self._phase: dict[str, str] = {}
        self._last_error: dict[str, float | None] = {}

    def phase(self, task: Task) -> str:
        """Return the current phase of a task: `uncertainty` or `score`."""
        begin = "score" if self.phases in ("score", "bound") else "uncertainty"
        return self._phase.get(task.task_id, begin)

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the next batch: random without rows, otherwise according to the phase."""
        drawn = self.fresh(task, self.pool_size)
        if not drawn:
            return []
        rows = self.rows_of(task)
        points, scheduled = _points(self.space.features_of(drawn))
        drawn = [drawn[index] for index in scheduled]
        rng = np.random.default_rng(self.next_seed())
        if not any(row.is_ok for row in rows) or not drawn:
            return [drawn[index] for index in rng.permutation(len(drawn))[:n]]
        measured, known_rows = _points(features_of_rows(self.space, rows))
        if not known_rows:
            return [drawn[index] for index in rng.permutation(len(drawn))[:n]]
        varies = np.ptp(np.concatenate([points, measured]), axis=0) > 0
        points, measured = points[:, varies], measured[:, varies]
        score = self._fit(measured, _log_times([rows[index] for index in known_rows]))
        by_tree = _predict_by_tree(score, points)
        predicted = by_tree.mean(axis=0)
        if self.phase(task) == "uncertainty":
            uncertainty = self._uncertainty(task, by_tree, points, measured, rows, known_rows)
            optimistic = predicted - HOPE * uncertainty
            chosen = _promising_and_diverse(optimistic, points, measured, n)
        else:
            uncertainty = by_tree.std(axis=0)
            optimistic = predicted - uncertainty if self.phases == "bound" else predicted
            chosen = list(np.argsort(optimistic, kind="stable")[:n])
            for position in np.flatnonzero(rng.random(len(chosen)) < self.epsilon):
                chosen[position] = int(rng.integers(len(drawn)))
        batch = self._predicted.setdefault(task.task_id, {})
        batch.update({drawn[i].trace_hash: float(predicted[i]) for i in chosen})
        return [
            Candidate(
                drawn[i].task_id,
                drawn[i].trace_json,
                Origin.PREDICT,
                float(predicted[i]),
                float(uncertainty[i]),
            )
            for i in chosen
        ]

    def _fit(self, points: np.ndarray, targets: np.ndarray) -> list[Any]:
        """Return extremely randomised trees, each fitted to all rows.

        Trees are fitted one by one, because scikit-learn's bookkeeping for a forest of this size
        takes longer than the fitting itself.
        """
        points = np.ascontiguousarray(points, np.float32)
        targets = np.ascontiguousarray(targets, np.float64)
        seeds = range(self.seed * self.trees, (self.seed + 1) * self.trees)
        return [
            self._tree(random_state=random_state).fit(points, targets, check_input=False)
            for random_state in seeds
        ]

    def _uncertainty(
        self,
        task: Task,
        by_tree: np.ndarray,
        points: np.ndarray,
        measured: np.ndarray,
        rows: list[Measurement],
        known_rows: list[int],
    ) -> np.ndarray:
        errors = self._errors.get(task.task_id, {})
        past_errors = [
            (position, errors[rows[index].trace_hash])
            for position, index in enumerate(known_rows)
            if rows[index].trace_hash in errors
        ]
        if len(past_errors) < MIN_ERRORS:
            return by_tree.std(axis=0)
        positions, targets = zip(*past_errors, strict=True)
        error_trees = self._fit(measured[list(positions)], np.array(targets))
        return _predict_by_tree(error_trees, points).mean(axis=0)

    def observe(self, measurements: Any) -> None:
        """Store the rows and S's errors on them, and update the phase."""
        super().observe(measurements)
        for task_id in dict.fromkeys(row.task_id for row in measurements):
            own = [row for row in measurements if row.task_id == task_id]
            predicted = self._predicted.pop(task_id, {})
            fresh = {
                row.trace_hash: abs(float(np.log(row.latency_ms)) - predicted[row.trace_hash])
                for row in own
                if row.is_ok and row.trace_hash in predicted
            }
            if not fresh:
                continue
            self._errors.setdefault(task_id, {}).update(fresh)
            if self.phases == "ping-pong":
                self._turn(task_id, float(np.mean(list(fresh.values()))))

    def _turn(self, task_id: str, error: float) -> None:
        """Switch the phase by comparing the batch's error with the previous batch of the phase."""
        phase = self._phase.setdefault(task_id, "uncertainty")
        before = self._last_error.get(task_id)
        self._last_error[task_id] = error
        if before is None:
            return
        if phase == "uncertainty" and error >= before:
            self._phase[task_id], self._last_error[task_id] = "score", None
        elif phase == "score" and error > _RISE * before:
            self._phase[task_id], self._last_error[task_id] = "uncertainty", None

    def extra_state(self) -> State:
        """Return phases, errors, and the predictions for the current batch."""
        return {
            "predicted": {key: dict(values) for key, values in self._predicted.items()},
            "errors": {key: dict(values) for key, values in self._errors.items()},
            "phase": dict(self._phase),
            "last_error": dict(self._last_error),
        }

    def restore_extra(self, state: State) -> None:
        """Restore phases, errors and predictions."""
        self._predicted = {key: dict(values) for key, values in state["predicted"].items()}
        self._errors = {key: dict(values) for key, values in state["errors"].items()}
        self._phase = dict(state["phase"])
        self._last_error = dict(state["last_error"])


def _predict_by_tree(trees: list[Any], points: np.ndarray) -> np.ndarray:
    """Return the prediction of each tree, [trees, n], checking the input only once."""
    points = np.ascontiguousarray(points, np.float32)
    return np.stack([tree.tree_.predict(points)[:, 0] for tree in trees])


def _points(features: list[np.ndarray | None]) -> tuple[np.ndarray, list[int]]:
    """Return pooled features [m, f] of the candidates that have any, and their positions."""
    positions = [
        index for index, matrix in enumerate(features) if matrix is not None and len(matrix)
    ]
    pooled = [pool_features(matrix) for matrix in features if matrix is not None and len(matrix)]
    return (np.stack(pooled) if pooled else np.zeros((0, 0), np.float32)), positions


def _log_times(rows: list[Measurement]) -> np.ndarray:
    """Return log ms; a failure counts as twice the slowest success."""
    slowest = max((row.latency_ms for row in rows if row.is_ok), default=1.0)
    return np.log([row.latency_ms if row.is_ok else 2 * slowest for row in rows])


def _promising_and_diverse(
    optimistic: np.ndarray, points: np.ndarray, measured: np.ndarray, n: int
) -> list[int]:
    """Return `n` of the `BREADTH` n lowest bounds, far from measured and chosen points."""
    candidates = np.argsort(optimistic, kind="stable")[: BREADTH * n]
    both = np.concatenate([points[candidates], measured])
    spread = both.std(axis=0)
    scaled = both / np.where(spread > 0, spread, 1.0)
    own, others = scaled[: len(candidates)], scaled[len(candidates) :]
    distance = np.min(np.linalg.norm(own[:, None] - others[None], axis=2), axis=1)
    chosen: list[int] = []
    for _ in range(min(n, len(candidates))):
        index = int(np.argmax(distance))
        chosen.append(int(candidates[index]))
        distance = np.minimum(distance, np.linalg.norm(own - own[index], axis=1))
        distance[index] = -np.inf
    return chosen


def _import_tree() -> Any:
    try:
        from sklearn.tree import ExtraTreeRegressor
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "tuning", "The tuner `alt`") from error
    return ExtraTreeRegressor
