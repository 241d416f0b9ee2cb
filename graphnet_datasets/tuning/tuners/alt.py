"""ALT: measure what is informative, not only what looks fast.

"ALT: Optimizing Tensor Compilation in Deep Learning Compilers with Active Learning", 2020. Only the
abstract was at hand: a score predictor, an uncertainty predictor that says how wrong the score is
on candidates that were not measured, and a ping-pong between the two. The steps below are ours.

1. The score predictor S is a forest on the log times of the measured rows of the task.
2. The uncertainty predictor U learns |y - S(x)| of rows that S had not seen when it predicted them:
   each batch is predicted before S is fitted to it. Until there are `MIN_ERRORS` of them, U is the
   deviation of S's trees.
3. In a U-phase the batch may be fast and is diverse: of the `BREADTH` n candidates with the least
   S - `HOPE` U those that are farthest from what was measured and from each other (k-centre). What
   is uncertain and surely slow teaches little of the fast ones. In an S-phase it is the best by S,
   a share epsilon random.
4. It begins with U. A U-phase ends when S's error on its batches stops falling: more of it teaches
   S nothing. An S-phase ends when S's error rises: S is asked where it does not know.
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
"""How many uncertainties a candidate of a U-phase may be faster than S predicts."""
_RISE = 1.1
"""An error has risen where it is a tenth above the one before: batches of eight are noisy."""


class AltTuner(MemoryTuner):
    """Active learning by turns: candidates that may be fast and are diverse, then fast ones.

    `phases` may be "ping-pong", or for comparison "score" (greedy on S), "uncertainty" (never
    anything else) or "bound" (greedy on S less the deviation of its trees).

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
                f"`phases` is `{phases}`. It can be `ping-pong`, `score`, `uncertainty` or `bound`."
            )
        self.phases, self.epsilon, self.pool_size, self.trees = phases, epsilon, pool_size, trees
        self._tree = _import_tree()
        self._predicted: dict[str, dict[str, float]] = {}
        """By task and trace: what S predicted of the batch at work, in log ms."""
        self._errors: dict[str, dict[str, float]] = {}
        self._phase: dict[str, str] = {}
        self._last_error: dict[str, float | None] = {}

    def phase(self, task: Task) -> str:
        """Return the phase that a task is in: `uncertainty` or `score`."""
        begin = "score" if self.phases in ("score", "bound") else "uncertainty"
        return self._phase.get(task.task_id, begin)

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the next batch: at random without rows, otherwise by the phase."""
        drawn = self.fresh(task, self.pool_size)
        if not drawn:
            return []
        rows = self.rows_of(task)
        points, kept = _points(self.space.features_of(drawn))
        drawn = [drawn[index] for index in kept]
        rng = np.random.default_rng(self.next_seed())
        if not any(row.is_ok for row in rows) or not drawn:
            return [drawn[index] for index in rng.permutation(len(drawn))[:n]]
        measured, known = _points(features_of_rows(self.space, rows))
        if not known:
            return [drawn[index] for index in rng.permutation(len(drawn))[:n]]
        varies = np.ptp(np.concatenate([points, measured]), axis=0) > 0
        points, measured = points[:, varies], measured[:, varies]
        score = self._fit(measured, _log_times([rows[index] for index in known]))
        by_tree = _of_each_tree(score, points)
        predicted = by_tree.mean(axis=0)
        if self.phase(task) == "uncertainty":
            uncertainty = self._uncertainty(task, by_tree, points, measured, rows, known)
            hoped = predicted - HOPE * uncertainty
            chosen = _hopeful_and_apart(hoped, points, measured, n)
        else:
            uncertainty = by_tree.std(axis=0)
            hoped = predicted - uncertainty if self.phases == "bound" else predicted
            chosen = list(np.argsort(hoped, kind="stable")[:n])
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
        """Return extremely randomised trees, of which each has seen all rows.

        They are grown one by one: of a forest this small scikit-learn's own bookkeeping takes
        longer than the growing.
        """
        points = np.ascontiguousarray(points, np.float32)
        targets = np.ascontiguousarray(targets, np.float64)
        seeds = range(self.seed * self.trees, (self.seed + 1) * self.trees)
        return [
            self._tree(random_state=each).fit(points, targets, check_input=False) for each in seeds
        ]

    def _uncertainty(
        self,
        task: Task,
        by_tree: np.ndarray,
        points: np.ndarray,
        measured: np.ndarray,
        rows: list[Measurement],
        known: list[int],
    ) -> np.ndarray:
        errors = self._errors.get(task.task_id, {})
        seen = [
            (position, errors[rows[index].trace_hash])
            for position, index in enumerate(known)
            if rows[index].trace_hash in errors
        ]
        if len(seen) < MIN_ERRORS:
            return by_tree.std(axis=0)
        positions, targets = zip(*seen, strict=True)
        errors_of = self._fit(measured[list(positions)], np.array(targets))
        return _of_each_tree(errors_of, points).mean(axis=0)

    def observe(self, measurements: Any) -> None:
        """Keep the rows, S's errors on them, and turn the phase over."""
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
        """Compare the batch's error with that of the batch before in the same phase."""
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
        """Return phases, errors, and what was predicted of the batch at work."""
        return {
            "predicted": {key: dict(each) for key, each in self._predicted.items()},
            "errors": {key: dict(each) for key, each in self._errors.items()},
            "phase": dict(self._phase),
            "last_error": dict(self._last_error),
        }

    def restore_extra(self, state: State) -> None:
        """Take phases, errors and predictions."""
        self._predicted = {key: dict(each) for key, each in state["predicted"].items()}
        self._errors = {key: dict(each) for key, each in state["errors"].items()}
        self._phase = dict(state["phase"])
        self._last_error = dict(state["last_error"])


def _of_each_tree(trees: list[Any], points: np.ndarray) -> np.ndarray:
    """Return what each tree predicts, [trees, n], without the checks that each would make anew."""
    points = np.ascontiguousarray(points, np.float32)
    return np.stack([each.tree_.predict(points)[:, 0] for each in trees])


def _points(features: list[np.ndarray | None]) -> tuple[np.ndarray, list[int]]:
    """Return pooled features [m, f] of those that have some, and which they are."""
    kept = [index for index, each in enumerate(features) if each is not None and len(each)]
    pooled = [pool_features(each) for each in features if each is not None and len(each)]
    return (np.stack(pooled) if pooled else np.zeros((0, 0), np.float32)), kept


def _log_times(rows: list[Measurement]) -> np.ndarray:
    """Return log ms; a failure counts as twice the slowest that is ok."""
    slowest = max((row.latency_ms for row in rows if row.is_ok), default=1.0)
    return np.log([row.latency_ms if row.is_ok else 2 * slowest for row in rows])


def _hopeful_and_apart(
    hoped: np.ndarray, points: np.ndarray, measured: np.ndarray, n: int
) -> list[int]:
    """Return `n` of the `BREADTH` n with the least `hoped`, far from measured and chosen ones."""
    candidates = np.argsort(hoped, kind="stable")[: BREADTH * n]
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
