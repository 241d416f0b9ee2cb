"""Bolt's tuner: measure every candidate of a small template once and choose the fastest.

Xing et al., "Bolt: Bridging the Gap between Auto-tuners and Hardware-native Performance", MLSys
2022. The expertise is in the templates: a few declarative parameters, pruned by hardware limits to
tens of candidates, so that a shape is profiled once within a minute. Here the templates are a
`Space` that implements `enumerate`, and the records are the cache: a measured candidate is not
proposed again.

Difference from the paper: candidates are ordered to cover the template (each next candidate is the
farthest from its predecessors in the space of knobs), so that a short budget still samples all of
its regions.
"""

from __future__ import annotations

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..knobs import knob_matrix
from ..task import Task
from .base import MemoryTuner

MAX_CANDIDATES = 4096
"""Limit for exhaustive enumeration; larger templates need a search."""


class BoltTuner(MemoryTuner):
    """Exhaustive search over an enumerable space."""

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the next candidates of the enumeration.

        Raises:
            TuningError: the space cannot be enumerated, or has too many candidates.
        """
        everything = self.space.enumerate(task)
        if everything is None:
            raise TuningError(
                f"The space of `{task.task_name}` cannot be enumerated. Use a template space with "
                "the tuner `bolt`, or choose another tuner."
            )
        if len(everything) > MAX_CANDIDATES:
            raise TuningError(
                f"The template of `{task.task_name}` has {len(everything)} candidates, but at most "
                f"{MAX_CANDIDATES} can be enumerated. Prune it, or choose another tuner."
            )
        ordered = [everything[index] for index in self._spread(everything)]
        return [candidate for candidate in ordered if not self.is_proposed(candidate)][:n]

    def _spread(self, candidates: list[Candidate]) -> list[int]:
        try:
            points, _ = knob_matrix([self.space.knobs(candidate) for candidate in candidates])
        except TuningError:
            return list(range(len(candidates)))  # without knobs, keep the order of the space
        return farthest_first(points)


def farthest_first(points: np.ndarray, first: int = 0) -> list[int]:
    """Return all indices of `points` [n, k], each the farthest from its predecessors.

    This is Gonzalez' greedy k-centre algorithm; ties go to the earlier index.

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
