"""Round-robin allocation, the baseline of the allocators."""

from __future__ import annotations

from .base import CurveAllocator


class RoundRobin(CurveAllocator):
    """An allocator that picks the task with the fewest slots, in the order of the tasks."""

    def pick(self, live: list[int]) -> int:
        """Return the index of the live task with the fewest slots."""
        return min(live, key=lambda index: (len(self.curves[index]), index))
