"""Whether an execution order keeps every dependence."""

from __future__ import annotations

from typing import Any

from ...errors import IllegalScheduleError
from .dependences import Dependences
from .domains import Domains
from .isl import isl
from .schedule import Schedule


def check_schedule(domains: Domains, needed: Dependences, schedule: Schedule) -> None:
    """Check that a schedule executes every point once, and none before what it depends on.

    Points that a parallel loop hands to different threads must not depend on each other.

    Raises:
        IllegalScheduleError: it does not; the message names two such points.
    """
    order = schedule.to_map()
    missing = domains.domain.subtract(order.domain())
    if not missing.is_empty():
        raise IllegalScheduleError(
            f"The schedule leaves out points of the statements: {_sample(missing)}."
        )
    if not order.is_single_valued():
        raise IllegalScheduleError("The schedule executes a point more than once.")
    wrong = violated(needed.all, order, schedule.rank)
    if not wrong.is_empty():
        raise IllegalScheduleError(
            f"The schedule executes a point no later than one that it depends on: {_sample(wrong)}."
        )
    for place, nest in enumerate(schedule.nests):
        if nest.num_parallel:
            wrong = _crossing(needed.all, order, schedule.rank, place, nest.num_parallel)
            if not wrong.is_empty():
                raise IllegalScheduleError(
                    f"Nest {place} would run points that depend on each other in different "
                    f"threads: {_sample(wrong)}."
                )


def violated(needed: Any, order: Any, rank: int) -> Any:
    """Return the pairs of `needed` whose second point does not come strictly later."""
    library = isl()
    space = library.Space.set_alloc(library.DEFAULT_CONTEXT, 0, rank)
    not_later = library.UnionMap.from_map(library.Map.lex_ge(space))
    # order(a) >= order(b) for a needed pair a -> b
    return needed.intersect(order.apply_range(not_later).apply_range(order.reverse()))


def _crossing(needed: Any, order: Any, rank: int, place: int, depth: int) -> Any:
    """Return the needed pairs inside of a nest whose outermost `depth` members differ."""
    names = [f"t{each}" for each in range(rank)]
    others = [f"u{each}" for each in range(rank)]
    differ = " or ".join(f"t{each} != u{each}" for each in range(1, depth + 1))
    pairs = isl().UnionMap(
        f"{{ [{', '.join(names)}] -> [{', '.join(others)}] : t0 = {place} and u0 = {place} "
        f"and ({differ}) }}"
    )
    return needed.intersect(order.apply_range(pairs).apply_range(order.reverse()))


def _sample(union: Any) -> str:
    """Return one element of a union set or map as text."""
    is_map = hasattr(union, "foreach_map")
    found: list[Any] = []
    (union.foreach_map if is_map else union.foreach_set)(found.append)
    for each in found:
        if not each.is_empty():
            return str(each.lexmin() if not is_map else each.sample()).strip("{} ")
    return "none"
