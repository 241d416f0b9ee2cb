"""Convex sets of the operators of a graph, and smaller convex sets within them.

A set is convex if no path between two of its operators leaves the set, so that it can be cut out.
Each set is stored as the bits of one integer, so that unions are fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import SampleError
from ..transforms import Cutter, Part


class ConvexSets:
    """The convex sets of a graph that its `Cutter` can cut out."""

    def __init__(self, cutter: Cutter) -> None:
        self.cutter = cutter
        waits_for = cutter.dependences
        size = len(waits_for)
        self._before = [0] * size
        self._after = [0] * size
        for position in range(size):
            own = 1 << position
            for before in waits_for[position]:
                own |= self._before[before]
            self._before[position] = own
        for position in reversed(range(size)):
            own = self._after[position] | 1 << position
            self._after[position] = own
            for before in waits_for[position]:
                self._after[before] |= own

    def close(self, ops: Iterable[int]) -> frozenset[int]:
        """Return the smallest set around these operators that can be cut out.

        It includes operators on paths between them, and operators that `Cutter` cannot separate
        from them.
        """
        bits = _bits(ops)
        while True:
            closed = _bits(self.cutter.complete(_positions(self._hull(bits))))
            if closed == bits:
                return frozenset(_positions(bits))
            bits = closed

    def cut(self, ops: Iterable[int], name: str) -> Part | None:
        """Cut out exactly these operators, or return None if that is impossible."""
        try:
            return self.cutter.cut(ops, name)
        except SampleError:
            return None

    def smaller(self, ops: frozenset[int], pieces: int) -> Iterator[frozenset[int]]:
        """Split `ops` into `pieces` and yield smaller convex sets, each once.

        A piece is a contiguous stretch of the graph. Its complement is made convex by removing
        everything that depends on the piece, or everything it depends on; or the piece is removed
        alone if the complement is convex. The pieces themselves, the smallest sets, come first.
        """
        ordered = sorted(ops)
        all_bits = _bits(ops)
        step = -(-len(ordered) // pieces)
        stretches = [_bits(ordered[start : start + step]) for start in range(0, len(ordered), step)]
        seen = {all_bits}
        candidates = [] if pieces == len(ordered) and pieces > 2 else list(stretches)
        # Operators at the end are the least likely to be needed.
        for stretch in reversed(stretches):
            after = before = 0
            for position in _positions(stretch):
                after |= self._after[position]
                before |= self._before[position]
            candidates += [all_bits & ~after, all_bits & ~before, all_bits & ~stretch]
        for candidate in candidates:
            if not candidate:
                continue
            closed = self.close(_positions(candidate))
            bits = _bits(closed)
            if bits not in seen and bits & ~all_bits == 0:
                seen.add(bits)
                yield closed

    def _hull(self, chosen: int) -> int:
        after = before = 0
        for position in _positions(chosen):
            after |= self._after[position]
            before |= self._before[position]
        return after & before


def _bits(ops: Iterable[int]) -> int:
    bits = 0
    for position in ops:
        bits |= 1 << position
    return bits


def _positions(bits: int) -> list[int]:
    digits = f"{bits:b}"[::-1]
    positions = []
    index = digits.find("1")
    while index >= 0:
        positions.append(index)
        index = digits.find("1", index + 1)
    return positions
