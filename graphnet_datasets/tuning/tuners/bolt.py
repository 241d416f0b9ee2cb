"""Bolt's tuner: measure every candidate of a small template once, and keep the fastest.

Xing et al., "Bolt: Bridging the Gap between Auto-tuners and Hardware-native Performance", MLSys
2022. The search is in the templates: a few declarative parameters that the hardware prunes to tens
of candidates, so that a shape is profiled in a minute and never again. Here the templates are a
`Space` whose `enumerate` gives them, and the records are the cache: a candidate that was measured
is not proposed again.

Ours: candidates come in an order that spreads over the template (each next one is farthest from
those before in its knobs), so that a budget that ends early has seen its corners.
"""

from __future__ import annotations

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..knobs import knob_matrix
from ..task import Task
from .base import MemoryTuner

MAX_CANDIDATES = 4096
"""More of one template are no template any more: they are to be searched, not enumerated."""


class BoltTuner(MemoryTuner):
    """Exhaustive over a space that can be enumerated."""

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the next of all candidates.

        Raises:
            TuningError: the space cannot be enumerated, or has too many candidates.
        """
        everything = self.space.enumerate(task)
        if everything is None:
            raise TuningError(
                f"The space of `{task.task_name}` cannot be enumerated. Give the tuner `bolt` a "
                "space of templates, or take another tuner."
            )
        if len(everything) > MAX_CANDIDATES:
            raise TuningError(
                f"The template of `{task.task_name}` has {len(everything)} candidates; at most "
                f"{MAX_CANDIDATES} are tried one by one. Prune it, or take another tuner."
            )
        ordered = [everything[index] for index in self._spread(everything)]
        return [each for each in ordered if not self.is_proposed(each)][:n]

    def _spread(self, candidates: list[Candidate]) -> list[int]:
        try:
            points, _ = knob_matrix([self.space.knobs(each) for each in candidates])
        except TuningError:
            return list(range(len(candidates)))  # a space without knobs: in its own order
        return farthest_first(points)


def farthest_first(points: np.ndarray, first: int = 0) -> list[int]:
    """Return all indices of `points` [n, k], each next one farthest from all before it.

    Gonzalez' greedy k-centre; of equal distances the earlier index.

    >>> farthest_first(np.array([[0.0], [1.0], [10.0], [6.0]]))
    [0, 2, 3, 1]
    """
    if not len(points):
        return []
    order = [first]
    distance = np.linalg.norm(points - points[first], axis=1)
    distance[first] = -1.0
    for _ in range(len(points) - 1):
        index = int(np.argmax(distance))
        order.append(index)
        distance = np.minimum(distance, np.linalg.norm(points - points[index], axis=1))
        distance[order] = -1.0
    return order
