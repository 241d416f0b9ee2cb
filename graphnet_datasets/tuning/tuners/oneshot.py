"""One-shot Tuner: no measurement at compile time, only a predictor that was trained before.

Ryu, Park and Sung, "One-Shot Tuner for Deep Learning Compilers", CC 2022. Offline, records are
collected of tasks drawn by how often real models call them (`draw_by_prior`), with programs that
lean to fast ones, and the predictor is trained. At compile time `pool_size` candidates are drawn
and the one with the best prediction is taken.

Ours: collecting that leans to fast programs is the tuner `ansor` without generations and with half
of its proposals random (`COLLECTING`); first all are random, then half are the model's. `picks` may
be more than one, for those who can afford a few measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate, Origin
from ..interfaces import CostModel, Space
from ..models.predictor import Predictor
from ..task import Task
from .base import MemoryTuner

COLLECTING: Mapping[str, float] = {"generations": 0, "epsilon": 0.5}
"""Options of the tuner `ansor` with which it collects records to train on."""


class OneShotTuner(MemoryTuner):
    """Proposes the `picks` best predicted of `pool_size` candidates, and then nothing more.

    `predictor` is a trained model, or the file of a `Predictor`.

    Raises:
        TuningError: there is no predictor, or it was trained on other features.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        predictor: CostModel | str | Path | None = None,
        picks: int = 1,
        pool_size: int = 2048,
    ) -> None:
        super().__init__(space, seed=seed)
        if predictor is None:
            raise TuningError(
                "The tuner `oneshot` needs a predictor that was trained on records. Train a "
                "`graphnet_datasets.tuning.models.predictor.Predictor`, save it, and name its file "
                "with the option `predictor`."
            )
        if picks < 1:
            raise TuningError(f"{picks} picks choose nothing; take at least 1.")
        is_file = isinstance(predictor, str | Path)
        self.model = Predictor.load(predictor, space) if is_file else predictor
        self.picks, self.pool_size = picks, pool_size

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the best predicted; nothing once `picks` were proposed."""
        left = self.picks - len(self._proposed.get(task.task_id, {}))
        if left <= 0:
            return []
        drawn = self.fresh(task, self.pool_size)
        scores, _ = self.model.predict(task, drawn)
        order = np.argsort(-scores, kind="stable")[: min(n, left)]
        return [
            Candidate(
                drawn[index].task_id,
                drawn[index].trace_json,
                Origin.PREDICT,
                float(scores[index]),
            )
            for index in order
            if np.isfinite(scores[index])
        ]


def draw_by_prior(tasks: Sequence[Task], n: int, seed: int) -> list[Task]:
    """Return `n` tasks without doubles, drawn with probability proportional to their weights.

    What real models call often is learned first; all tasks where there are not more than `n`.
    """
    if n >= len(tasks):
        return list(tasks)
    weights = np.array([task.weight for task in tasks], np.float64)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(tasks), n, replace=False, p=weights / weights.sum())
    return [tasks[index] for index in chosen]
