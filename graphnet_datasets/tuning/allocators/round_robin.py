"""Each task in turn: the baseline of allocators."""

from __future__ import annotations

from .base import CurveAllocator


class RoundRobin(CurveAllocator):
    """Gives the next slot to the task with the fewest so far, in the order of the tasks."""

    def pick(self, live: list[int]) -> int:
        """Return the live task with the fewest slots."""
        return min(live, key=lambda index: (len(self.curves[index]), index))
