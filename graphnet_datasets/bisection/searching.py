"""The search for a minimal failing set of operators: bisection, then delta debugging.

Bisection drops operators from the end and then from the beginning of the graph while the failure
remains. It takes about ten trials for a thousand operators and suffices if one place is
responsible. Delta debugging (ddmin: Zeller and Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", 2002) then removes pieces, from halves to single operators, considering
only convex sets. It stops when no operator can be removed, alone or with its dependents.
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
    """Reduce the failing set `start` to a convex failing set that cannot be made smaller.

    `fails` is called with convex sets only, and not again once it raises. `on_smaller` is called
    with each smaller failing set.

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
        smaller = next((subset for subset in sets.smaller(current, pieces) if fails(subset)), None)
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
    """Bisect for the shortest failing prefix or suffix of a set."""
    ordered = sorted(start)
    best = start
    least, most = 0, len(ordered)  # the first number of operators passes, the second fails
    while most - least > 1:
        middle = (least + most) // 2
        part = sets.close(ordered[:middle] if from_start else ordered[-middle:])
        if len(part) >= len(best):  # a region or tuple that cannot be split
            least = middle
        elif part <= start and fails(part):
            best, most = part, middle
            on_smaller(best)
        else:
            least = middle
    return best
