"""Flow, anti and output dependences between the points of statements.

The terms of a reduction may be added in any order, so the dependences of a reduction on itself
through its accumulator are omitted; those through its expression remain.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from .domains import Domains
from .isl import isl


@dataclasses.dataclass(frozen=True)
class Dependences:
    """Maps from points to the points that must be executed later.

    Attributes:
        flow: from writes to the reads of the value.
        false: from reads and writes to the writes that overwrite the value.
        all: the union of both.
    """

    flow: Any
    false: Any

    @functools.cached_property
    def all(self) -> Any:
        """Union of flow and false dependences."""
        return self.flow.union(self.false).coalesce()

    @functools.cached_property
    def _by_ends(self) -> dict[tuple[str, str], Any]:
        by_ends: dict[tuple[str, str], Any] = {}
        for dependence in _maps(self.all):
            if not dependence.is_empty():
                ends = (
                    dependence.get_tuple_name(isl().dim_type.in_),
                    dependence.get_tuple_name(isl().dim_type.out),
                )
                by_ends[ends] = by_ends[ends].union(dependence) if ends in by_ends else dependence
        return by_ends

    def between(self, first: str, second: str) -> Any | None:
        """Return the dependences between the points of two statements, or None.

        Statements are named as in `domains.statement_name`.
        """
        return self._by_ends.get((first, second))


def dependences(domains: Domains) -> Dependences:
    """Compute the dependences between an instance's statements, executed in source order."""
    library = isl()
    all_reads = domains.reads.union(domains.accumulates)
    flow = _analyse(all_reads, domains.writes, domains.initial)
    false = _analyse(domains.writes, all_reads.union(domains.writes), domains.initial)
    plain_flow = _analyse(domains.reads, domains.writes, domains.initial)
    plain_false = _analyse(domains.writes, domains.reads, domains.initial)

    self_pairs = library.UnionMap("{ }")  # from every statement to itself
    for part in _sets(domains.domain):
        space = part.get_space().map_from_set()
        self_pairs = self_pairs.union(library.UnionMap.from_map(library.Map.universe(space)))

    def relaxed(whole: Any, plain: Any) -> Any:
        return whole.subtract(self_pairs).union(plain.intersect(self_pairs))

    return Dependences(relaxed(flow, plain_flow), relaxed(false, plain_false))


def _analyse(sink: Any, source: Any, order: Any) -> Any:
    library = isl()
    access = library.UnionAccessInfo.from_sink(sink)
    access = access.set_may_source(source).set_schedule_map(order)
    return access.compute_flow().get_may_dependence()


def _maps(union: Any) -> list[Any]:
    maps: list[Any] = []
    union.foreach_map(maps.append)
    return maps


def _sets(union: Any) -> list[Any]:
    sets: list[Any] = []
    union.foreach_set(sets.append)
    return sets
