"""Nests that share their outermost loops, so that what one writes is still in a cache for the next.

A norm reads its input twice: once for the sums of a row and once to apply them. With the loop over
rows around both, the second time it comes from the cache. Dependences decide what may be shared,
the sizes whether it pays.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ..language.instance import Instance
from ..polyhedral.dependences import Dependences
from ..polyhedral.fusion import Strategy, num_leading_shared
from .elements import Dim, Nest, elements_of
from .machine import Machine

MIN_REUSE = 16
"""Points of an iteration for each element of an operand that every iteration reads again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fused:
    """Nests within common loops over `dims`, which are parallel; () where there are none."""

    dims: tuple[Dim, ...]
    nests: tuple[Nest, ...]

    @property
    def num_iterations(self) -> int:
        """How often the nests are executed."""
        return math.prod(each.extent for each in self.dims)


def fuse_outer(
    instance: Instance,
    needed: Dependences,
    nests: Sequence[Nest],
    strategy: Strategy,
    machine: Machine,
    threads: int,
) -> list[Fused]:
    """Return the nests in groups, in order, each stripped of the loops that its group shares."""
    found: list[Fused] = []
    place = 0
    while place < len(nests):
        best = Fused((), (nests[place],))
        if strategy != "min":
            end = place + 1
            while end < len(nests):
                candidate = _together(instance, needed, nests[place : end + 1])
                if candidate is None or not _pays(
                    instance, candidate, nests[place : end + 1], strategy, machine, threads
                ):
                    break
                best = candidate
                end += 1
        found.append(best)
        place += len(best.nests)
    return found


def _together(instance: Instance, needed: Dependences, nests: Sequence[Nest]) -> Fused | None:
    """Return nests with all leading loops shared that may be, None if there are none."""
    if any(each.begins for each in nests):  # a part of a box only
        return None
    depth = min(len(each.dims) for each in nests)
    for position, later in enumerate(nests):
        for earlier in nests[:position]:
            for one in earlier.statements:
                for two in later.statements:
                    depth = min(depth, num_leading_shared(instance, needed, one, two))
    if depth < 1:
        return None
    stripped = tuple(dataclasses.replace(each, dims=each.dims[depth:]) for each in nests)
    return Fused(nests[0].dims[:depth], stripped)


def _pays(
    instance: Instance,
    fused: Fused,
    nests: Sequence[Nest],
    strategy: Strategy,
    machine: Machine,
    threads: int,
) -> bool:
    """Tell whether sharing loops saves traffic: data that only one iteration's part of fits."""
    if fused.num_iterations < 2 * threads:
        return False
    names = {each.name for each in fused.dims}
    touched: list[set[str]] = []
    for nest in nests:
        touched.append({each.tensor for each in nest.elements()})
        for value in nest.expressions():
            if not nest.reductions:
                break
            for each in elements_of(value):
                if any(each.offset.coefficient(name) for name in names) or each.gathers:
                    continue
                elements = math.prod(
                    nest.extents.get(name, 1) for name, _ in each.offset.coefficients
                )
                if nest.num_points < MIN_REUSE * elements * fused.num_iterations:
                    return False
    shared = {
        tensor
        for position, each in enumerate(touched)
        for tensor in each
        if any(tensor in other for other in touched[:position])
    }
    num_bytes = sum(
        instance.tensor(each).num_elements * instance.tensor(each).dtype.itemsize for each in shared
    )
    if not shared:
        return False
    part = num_bytes / fused.num_iterations
    if strategy == "max":
        return part <= machine.l2_bytes
    return num_bytes > machine.l2_bytes / 2 and part <= machine.l2_bytes / 2
