"""The search for a smallest failing set of operators: halving, then delta debugging.

Halving finds the first operator that the failure needs nothing behind of, and the last that it
needs nothing before of: some ten trials for a thousand operators, right where one place is to
blame. Delta debugging (ddmin: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002) then takes pieces away, from halves to single operators, over convex sets instead of
any; it ends at a set of which no operator can be left out, alone or with what depends on it.
"""

from __future__ import annotations

from collections.abc import Callable

from .convex import ConvexSets


def find_smallest(
    sets: ConvexSets,
    start: frozenset[int],
    fails: Callable[[frozenset[int]], bool],
    on_smaller: Callable[[frozenset[int]], None] = lambda _: None,
) -> frozenset[int]:
    """Return a failing convex set within `start`, which fails, that cannot be made smaller.

    `fails` is asked about convex sets only, and no more once it raises; `on_smaller` is told each
    smaller one that fails.

    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.transforms import Cutter
    >>> ops = tuple(Op("torch.relu", (Ref(index),)) for index in range(20))
    >>> chain = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),), ops, Ref(20))
    >>> sets = ConvexSets(Cutter(chain))
    >>> sorted(find_smallest(sets, frozenset(range(20)), lambda ops: {7, 9} <= ops))
    [7, 8, 9]
    """
    current = _halve(sets, start, fails, on_smaller, from_start=True)
    current = _halve(sets, current, fails, on_smaller, from_start=False)
    pieces = 2
    while len(current) > 1:
        pieces = min(pieces, len(current))
        smaller = next((each for each in sets.smaller(current, pieces) if fails(each)), None)
        if smaller is not None:
            on_smaller(smaller)
            current = smaller
            pieces = max(pieces - 1, 2)
        elif pieces < len(current):
            pieces = min(2 * pieces, len(current))
        else:
            break
    return current


def _halve(
    sets: ConvexSets,
    start: frozenset[int],
    fails: Callable[[frozenset[int]], bool],
    on_smaller: Callable[[frozenset[int]], None],
    *,
    from_start: bool,
) -> frozenset[int]:
    """Return the shortest failing beginning of a set, or end of it, as halving finds it."""
    ordered = sorted(start)
    best = start
    least, most = 0, len(ordered)  # so many operators do not fail, so many do
    while most - least > 1:
        middle = (least + most) // 2
        part = sets.close(ordered[:middle] if from_start else ordered[-middle:])
        if len(part) >= len(best):  # a region or a tuple that cannot be divided
            least = middle
        elif part <= start and fails(part):
            best, most = part, middle
            on_smaller(best)
        else:
            least = middle
    return best
