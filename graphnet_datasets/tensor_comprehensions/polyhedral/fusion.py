"""Fusion of neighbouring statements into groups that share loops.

Statements are executed in source order, so no two statements depend on each other mutually: each is
its own strongly connected component, whose parallel loops are found by isl's scheduler (see
`scheduling`). Statements are visited in source order and merged with the preceding group if the
strategy allows it. The shared loops of a group are those whose index is equal in all dependences
between its statements. They remain parallel, and no loop is skewed or shifted; isl's scheduler
would do so to fuse more statements, and takes minutes for a few layers.

- `min` never merges;
- `preserve3` merges if the number of parallel loops does not decrease, or remains at least three;
- `max` merges if at least one shared loop remains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ..language.instance import Instance
from .dependences import Dependences
from .domains import has_initialisation, index_names, statement_name
from .isl import isl

Strategy = Literal["max", "preserve3", "min"]


def fuse(
    instance: Instance, dependences: Dependences, strategy: Strategy, parallel: Mapping[int, int]
) -> list[tuple[int, ...]]:
    """Group neighbouring statements, identified by their numbers.

    Args:
        parallel: number of parallel loops of each statement on its own (see `parallel_loops`).
    """
    groups: list[tuple[int, ...]] = []
    loops: list[int] = []
    for number, statement in enumerate(instance.statements):
        own = parallel.get(number, len(statement.subscripts))
        if groups and strategy != "min":
            shared = shared_loops(instance, dependences, groups[-1], number)
            remaining = min(shared, loops[-1])
            falls = remaining < min(loops[-1], own)
            allowed = remaining >= 1 if strategy == "max" else (remaining >= 3 or not falls)
            if shared >= 0 and (allowed or (remaining == 0 and own == 0 and loops[-1] == 0)):
                groups[-1] = (*groups[-1], number)
                loops[-1] = remaining
                continue
        groups.append((number,))
        loops.append(own)
    return groups


def shared_loops(
    instance: Instance, dependences: Dependences, group: Sequence[int], number: int
) -> int:
    """Return the number of output indices that a statement shares with a group.

    An index is shared with a statement of the group if all dependences between the two preserve
    its value, and it has the same position in both outputs and the same range. Statements
    without dependences share the leading indices with equal ranges.
    """
    statement = instance.statements[number]
    fewest = len(statement.subscripts)
    for other in group:
        before = instance.statements[other]
        agreeing = [
            place
            for place, (earlier, later) in enumerate(
                zip(before.indices, statement.indices, strict=False)
            )
            if place < min(len(before.subscripts), len(statement.subscripts))
            and (earlier.begin, earlier.end) == (later.begin, later.end)
        ]
        num_shared = sum(
            _is_kept(instance, dependences, other, number, place) for place in agreeing
        )
        fewest = min(fewest, num_shared)
    return fewest


def num_leading_shared(
    instance: Instance, dependences: Dependences, first: int, second: int
) -> int:
    """Return the number of outermost output indices that can be shared parallel loops."""
    earlier, later = instance.statements[first], instance.statements[second]
    most = min(len(earlier.subscripts), len(later.subscripts))
    for place in range(most):
        left, right = earlier.indices[place], later.indices[place]
        same = (left.begin, left.end) == (right.begin, right.end)
        if not same or not _is_kept(instance, dependences, first, second, place):
            return place
        if not _is_kept(instance, dependences, second, first, place):
            return place
    return most


def _is_kept(
    instance: Instance, dependences: Dependences, first: int, second: int, place: int
) -> bool:
    library = isl()
    earlier, later = instance.statements[first], instance.statements[second]
    for initial_one in (False, True) if has_initialisation(earlier) else (False,):
        for initial_two in (False, True) if has_initialisation(later) else (False,):
            pairs = dependences.between(
                statement_name(first, initial_one), statement_name(second, initial_two)
            )
            if pairs is None:
                continue
            left = ", ".join(index_names(earlier, initial_one))
            right = [f"j{position}" for position in range(len(index_names(later, initial_two)))]
            same = library.Map(
                f"{{ {statement_name(first, initial_one)}[{left}] -> "
                f"{statement_name(second, initial_two)}[{', '.join(right)}] "
                f": i{place} = j{place} }}"
            )
            if not pairs.is_subset(same):
                return False
    return True
