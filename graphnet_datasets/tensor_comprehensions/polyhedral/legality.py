"""Legality checks of schedules against dependences."""

from __future__ import annotations

from typing import Any

from ...errors import IllegalScheduleError
from .dependences import Dependences
from .domains import Domains
from .isl import isl
from .schedule import Schedule


def check_schedule(domains: Domains, dependences: Dependences, schedule: Schedule) -> None:
    """Check that a schedule executes every point once and after all points it depends on.

    Points that a parallel loop distributes to different threads must be independent.

    Raises:
        IllegalScheduleError: the schedule is illegal; the message contains an example.
    """
    order = schedule.to_map()
    missing = domains.domain.subtract(order.domain())
    if not missing.is_empty():
        raise IllegalScheduleError(
            f"The schedule omits points of the statements: {_sample(missing)}."
        )
    if not order.is_single_valued():
        raise IllegalScheduleError("The schedule executes a point more than once.")
    wrong = violated(dependences.all, order, schedule.rank)
    if not wrong.is_empty():
        raise IllegalScheduleError(
            f"The schedule executes a point no later than a point it depends on: {_sample(wrong)}."
        )
    for place, nest in enumerate(schedule.nests):
        if nest.num_parallel:
            wrong = _crossing(dependences.all, order, schedule.rank, place, nest.num_parallel)
            if not wrong.is_empty():
                raise IllegalScheduleError(
                    f"Nest {place} would run points that depend on each other in different "
                    f"threads: {_sample(wrong)}."
                )


def violated(dependences: Any, order: Any, rank: int) -> Any:
    """Return the dependences whose second point is not executed strictly later."""
    library = isl()
    space = library.Space.set_alloc(library.DEFAULT_CONTEXT, 0, rank)
    not_later = library.UnionMap.from_map(library.Map.lex_ge(space))
    # order(a) >= order(b) for a dependence a -> b
    return dependences.intersect(order.apply_range(not_later).apply_range(order.reverse()))


def _crossing(dependences: Any, order: Any, rank: int, place: int, depth: int) -> Any:
    """Return the dependences inside a nest whose outermost `depth` time members differ."""
    names = [f"t{position}" for position in range(rank)]
    others = [f"u{position}" for position in range(rank)]
    differ = " or ".join(f"t{position} != u{position}" for position in range(1, depth + 1))
    pairs = isl().UnionMap(
        f"{{ [{', '.join(names)}] -> [{', '.join(others)}] : t0 = {place} and u0 = {place} "
        f"and ({differ}) }}"
    )
    return dependences.intersect(order.apply_range(pairs).apply_range(order.reverse()))


def _sample(union: Any) -> str:
    """Return an element of a union set or map as a string."""
    is_map = hasattr(union, "foreach_map")
    parts: list[Any] = []
    (union.foreach_map if is_map else union.foreach_set)(parts.append)
    for part in parts:
        if not part.is_empty():
            return str(part.lexmin() if not is_map else part.sample()).strip("{} ")
    return "none"
