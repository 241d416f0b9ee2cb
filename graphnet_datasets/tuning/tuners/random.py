"""Random search: the baseline that every other tuner has to beat at equal trials."""

from __future__ import annotations

import numpy as np

from ..candidate import Candidate
from ..task import Task
from .base import MemoryTuner


class RandomTuner(MemoryTuner):
    """Draws from the space, without doubles, in random order."""

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return `n` candidates of the space that are new, in random order."""
        drawn = self.fresh(task, n)
        order = np.random.default_rng(self.next_seed()).permutation(len(drawn))
        return [drawn[index] for index in order]
