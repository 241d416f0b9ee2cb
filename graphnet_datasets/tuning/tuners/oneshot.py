"""One-shot Tuner: a pretrained predictor instead of measurements at compile time.

Ryu, Park and Sung, "One-Shot Tuner for Deep Learning Compilers", CC 2022. Offline, tasks are drawn
in proportion to how often real models call them, records biased towards fast programs are
collected, and the predictor is trained. At compile time `pool_size` candidates are drawn, and the
one with the best prediction is used.

Differences from the paper: biased collection uses the tuner `ansor` without generations and with
half of its proposals random; the first proposals are all random. `picks` may be greater than 1 if a
few measurements are affordable.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate, Origin
from ..interfaces import CostModel, Space
from ..models.arrays import kind_of
from ..models.code_trees import KIND, CodeTrees
from ..models.predictor import Predictor
from ..task import Task
from .base import MemoryTuner


class OneShotTuner(MemoryTuner):
    """A tuner that proposes the `picks` best predicted of `pool_size` candidates, then stops.

    `predictor` is a trained model, or the path of a saved `Predictor` or `CodeTrees`. `CodeTrees`
    compiles all candidates of the pool, which takes a fraction of a second each.

    Raises:
        TuningError: `predictor` is missing, or was trained on other features.
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
                "The tuner `oneshot` needs a trained predictor. Train a "
                "`graphnet_datasets.tuning.models.predictor.Predictor`, save it, and pass its path "
                "as the option `predictor`."
            )
        if picks < 1:
            raise TuningError(f"`picks` must be at least 1, got {picks}.")
        is_file = isinstance(predictor, str | Path)
        self.model = load_model(predictor, space) if is_file else predictor
        self.picks, self.pool_size = picks, pool_size

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the best predicted candidates, or an empty list after `picks` proposals."""
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


def load_model(path: str | Path, space: Space) -> CostModel:
    """Return a saved `Predictor` or `CodeTrees`.

    Raises:
        TuningError: the file contains neither, or was trained on other features.
    """
    model_class = CodeTrees if kind_of(path) == KIND else Predictor
    return model_class.load(path, space)
