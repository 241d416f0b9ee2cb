"""Convex sets of the operators of a graph, and the smaller ones within one of them.

A set is convex if none of its operators waits for an operator outside of it that waits for one
inside: then it can be cut out. Sets are kept as the bits of one integer, so that a union over
thousands of operators is a few instructions.
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

        It holds what lies between two of them, and what cannot be told apart from them (`Cutter`).
        """
        chosen = _bits(ops)
        while True:
            closed = _bits(self.cutter.complete(_positions(self._hull(chosen))))
            if closed == chosen:
                return frozenset(_positions(chosen))
            chosen = closed

    def cut(self, ops: Iterable[int], name: str) -> Part | None:
        """Cut the operators out, or return None where they cannot be cut out as they are."""
        try:
            return self.cutter.cut(ops, name)
        except SampleError:
            return None

    def smaller(self, ops: frozenset[int], pieces: int) -> Iterator[frozenset[int]]:
        """Yield convex sets within `ops`, each once, that lack one of so many pieces of it.

        A piece is a stretch of the graph. It goes together with all that waits for it, or all that
        it waits for, so that what is left is convex; or alone, where that leaves a convex set.
        The pieces themselves come first, the least sets of all.
        """
        ordered = sorted(ops)
        whole = _bits(ops)
        step = -(-len(ordered) // pieces)
        stretches = [_bits(ordered[start : start + step]) for start in range(0, len(ordered), step)]
        seen = {whole}
        candidates = [] if pieces == len(ordered) and pieces > 2 else list(stretches)
        for stretch in reversed(stretches):  # what comes last is needed least to get there
            after = before = 0
            for position in _positions(stretch):
                after |= self._after[position]
                before |= self._before[position]
            candidates += [whole & ~after, whole & ~before, whole & ~stretch]
        for candidate in candidates:
            if not candidate:
                continue
            closed = self.close(_positions(candidate))
            bits = _bits(closed)
            if bits not in seen and bits & ~whole == 0:
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
    found = digits.find("1")
    while found >= 0:
        positions.append(found)
        found = digits.find("1", found + 1)
    return positions
