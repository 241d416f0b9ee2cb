"""Random search, the baseline for all other tuners at equal trials."""

from __future__ import annotations

import numpy as np

from ..candidate import Candidate
from ..task import Task
from .base import MemoryTuner


class RandomTuner(MemoryTuner):
    """A tuner that draws distinct candidates in random order."""

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return up to `n` new candidates of the space in random order."""
        drawn = self.fresh(task, n)
        order = np.random.default_rng(self.next_seed()).permutation(len(drawn))
        return [drawn[index] for index in order]
