"""Which points have to follow which: flow, anti and output dependences.

The terms of one reduction may be added in any order, so the dependences of a reduction on itself
through its accumulator are left out; those through its expression are kept.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from .domains import Domains
from .isl import isl


@dataclasses.dataclass(frozen=True)
class Dependences:
    """Maps from a point to the points that have to come after it.

    Attributes:
        flow: from a write to what reads it.
        false: from a read or write to what overwrites it.
        all: both.
    """

    flow: Any
    false: Any

    @functools.cached_property
    def all(self) -> Any:
        """Flow and false dependences together."""
        return self.flow.union(self.false).coalesce()

    @functools.cached_property
    def _by_ends(self) -> dict[tuple[str, str], Any]:
        found: dict[tuple[str, str], Any] = {}
        for each in _maps(self.all):
            if not each.is_empty():
                ends = (
                    each.get_tuple_name(isl().dim_type.in_),
                    each.get_tuple_name(isl().dim_type.out),
                )
                found[ends] = found[ends].union(each) if ends in found else each
        return found

    def between(self, first: str, second: str) -> Any | None:
        """Return the dependences from one statement's points to another's, None if there are none.

        Statements are named as in `domains.statement_name`.
        """
        return self._by_ends.get((first, second))


def dependences(domains: Domains) -> Dependences:
    """Return the dependences of an instance's statements in the order of its text."""
    library = isl()
    everything = domains.reads.union(domains.accumulates)
    flow = _analyse(everything, domains.writes, domains.initial)
    false = _analyse(domains.writes, everything.union(domains.writes), domains.initial)
    plain_flow = _analyse(domains.reads, domains.writes, domains.initial)
    plain_false = _analyse(domains.writes, domains.reads, domains.initial)

    own = library.UnionMap("{ }")  # of every statement to itself
    for each in _sets(domains.domain):
        space = each.get_space().map_from_set()
        own = own.union(library.UnionMap.from_map(library.Map.universe(space)))

    def relaxed(whole: Any, plain: Any) -> Any:
        return whole.subtract(own).union(plain.intersect(own))

    return Dependences(relaxed(flow, plain_flow), relaxed(false, plain_false))


def _analyse(sink: Any, source: Any, order: Any) -> Any:
    library = isl()
    access = library.UnionAccessInfo.from_sink(sink)
    access = access.set_may_source(source).set_schedule_map(order)
    return access.compute_flow().get_may_dependence()


def _maps(union: Any) -> list[Any]:
    found: list[Any] = []
    union.foreach_map(found.append)
    return found


def _sets(union: Any) -> list[Any]:
    found: list[Any] = []
    union.foreach_set(found.append)
    return found
