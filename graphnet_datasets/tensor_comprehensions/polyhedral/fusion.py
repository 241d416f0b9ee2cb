"""Which neighbouring statements share loops.

Statements run one after the other in the text, so that no two depend on each other both ways: each
is a strongly connected component of its own, whose parallel loops isl's scheduler finds (see
`scheduling`). They are taken in the order of the text and merged with the group before them when
the strategy allows it. The loops of a merged group are those whose index is the same in every
dependence between its statements, so that they stay parallel and no loop is skewed or shifted,
which isl's scheduler would do to merge more, and which takes it minutes for a few layers.

- `min` never merges;
- `preserve3` merges if the number of parallel loops does not fall, or stays at three or more;
- `max` merges if one loop is left.
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
    instance: Instance, needed: Dependences, strategy: Strategy, parallel: Mapping[int, int]
) -> list[tuple[int, ...]]:
    """Return groups of neighbouring statements, by number, in order.

    Args:
        parallel: how many parallel loops each statement has alone (see `parallel_loops`).
    """
    groups: list[tuple[int, ...]] = []
    loops: list[int] = []
    for number, statement in enumerate(instance.statements):
        own = parallel.get(number, len(statement.subscripts))
        if groups and strategy != "min":
            shared = shared_loops(instance, needed, groups[-1], number)
            kept = min(shared, loops[-1])
            falls = kept < min(loops[-1], own)
            allowed = kept >= 1 if strategy == "max" else (kept >= 3 or not falls)
            if shared >= 0 and (allowed or (kept == 0 and own == 0 and loops[-1] == 0)):
                groups[-1] = (*groups[-1], number)
                loops[-1] = kept
                continue
        groups.append((number,))
        loops.append(own)
    return groups


def shared_loops(instance: Instance, needed: Dependences, group: Sequence[int], number: int) -> int:
    """Return how many output indices a statement shares with a group.

    An index is shared with each statement of the group if all dependences between the two leave
    it as it is, at the same place of both outputs and with the same range. Statements without any
    dependence share the leading indices whose ranges agree.
    """
    statement = instance.statements[number]
    fewest = len(statement.subscripts)
    for other in group:
        before = instance.statements[other]
        agreeing = [
            place
            for place, (one, two) in enumerate(zip(before.indices, statement.indices, strict=False))
            if place < min(len(before.subscripts), len(statement.subscripts))
            and (one.begin, one.end) == (two.begin, two.end)
        ]
        kept = sum(_is_kept(instance, needed, other, number, place) for place in agreeing)
        fewest = min(fewest, kept)
    return fewest


def num_leading_shared(instance: Instance, needed: Dependences, first: int, second: int) -> int:
    """Return how many outermost output indices two statements may share as parallel loops."""
    one, two = instance.statements[first], instance.statements[second]
    most = min(len(one.subscripts), len(two.subscripts))
    for place in range(most):
        left, right = one.indices[place], two.indices[place]
        same = (left.begin, left.end) == (right.begin, right.end)
        if not same or not _is_kept(instance, needed, first, second, place):
            return place
        if not _is_kept(instance, needed, second, first, place):
            return place
    return most


def _is_kept(instance: Instance, needed: Dependences, first: int, second: int, place: int) -> bool:
    library = isl()
    one, two = instance.statements[first], instance.statements[second]
    for initial_one in (False, True) if has_initialisation(one) else (False,):
        for initial_two in (False, True) if has_initialisation(two) else (False,):
            found = needed.between(
                statement_name(first, initial_one), statement_name(second, initial_two)
            )
            if found is None:
                continue
            left = ", ".join(index_names(one, initial_one))
            right = [f"j{each}" for each in range(len(index_names(two, initial_two)))]
            same = library.Map(
                f"{{ {statement_name(first, initial_one)}[{left}] -> "
                f"{statement_name(second, initial_two)}[{', '.join(right)}] "
                f": i{place} = j{place} }}"
            )
            if not found.is_subset(same):
                return False
    return True
