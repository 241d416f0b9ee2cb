"""Sharing of outermost loops between nests, to keep data in the cache from one nest to the next.

A normalization reads its input twice: to compute statistics of a row and to apply them. If both
nests share the loop over rows, the second read hits the cache. Dependences decide which loops may
be shared; sizes decide whether it pays.
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
"""Minimum number of points in an iteration per element of an operand read in every iteration."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fused:
    """Nests inside parallel loops over `dims`, which is () without shared loops."""

    dims: tuple[Dim, ...]
    nests: tuple[Nest, ...]

    @property
    def num_iterations(self) -> int:
        """Number of iterations of the shared loops."""
        return math.prod(dim.extent for dim in self.dims)


def fuse_outer(
    instance: Instance,
    dependences: Dependences,
    nests: Sequence[Nest],
    strategy: Strategy,
    machine: Machine,
    threads: int,
) -> list[Fused]:
    """Group the nests in order; each nest loses the loops that its group shares."""
    groups: list[Fused] = []
    place = 0
    while place < len(nests):
        best = Fused((), (nests[place],))
        if strategy != "min":
            end = place + 1
            while end < len(nests):
                candidate = _share_loops(instance, dependences, nests[place : end + 1])
                if candidate is None or not _pays(
                    instance, candidate, nests[place : end + 1], strategy, machine, threads
                ):
                    break
                best = candidate
                end += 1
        groups.append(best)
        place += len(best.nests)
    return groups


def _share_loops(
    instance: Instance, dependences: Dependences, nests: Sequence[Nest]
) -> Fused | None:
    """Return the nests with all leading loops shared that dependences allow, or None."""
    if any(nest.begins for nest in nests):  # only part of a box
        return None
    depth = min(len(nest.dims) for nest in nests)
    for position, later in enumerate(nests):
        for earlier in nests[:position]:
            for earlier_number in earlier.statements:
                for later_number in later.statements:
                    depth = min(
                        depth,
                        num_leading_shared(instance, dependences, earlier_number, later_number),
                    )
    if depth < 1:
        return None
    stripped = tuple(dataclasses.replace(nest, dims=nest.dims[depth:]) for nest in nests)
    return Fused(nests[0].dims[:depth], stripped)


def _pays(
    instance: Instance,
    fused: Fused,
    nests: Sequence[Nest],
    strategy: Strategy,
    machine: Machine,
    threads: int,
) -> bool:
    """Return whether sharing loops saves traffic: shared data fits in a cache only per
    iteration.
    """
    if fused.num_iterations < 2 * threads:
        return False
    names = {dim.name for dim in fused.dims}
    touched: list[set[str]] = []
    for nest in nests:
        touched.append({element.tensor for element in nest.elements()})
        for value in nest.expressions():
            if not nest.reductions:
                break
            for element in elements_of(value):
                if any(element.offset.coefficient(name) for name in names) or element.gathers:
                    continue
                elements = math.prod(
                    nest.extents.get(name, 1) for name, _ in element.offset.coefficients
                )
                if nest.num_points < MIN_REUSE * elements * fused.num_iterations:
                    return False
    shared = {
        tensor
        for position, tensors in enumerate(touched)
        for tensor in tensors
        if any(tensor in other for other in touched[:position])
    }
    num_bytes = sum(
        instance.tensor(tensor).num_elements * instance.tensor(tensor).dtype.itemsize
        for tensor in shared
    )
    if not shared:
        return False
    part = num_bytes / fused.num_iterations
    if strategy == "max":
        return part <= machine.l2_bytes
    return num_bytes > machine.l2_bytes / 2 and part <= machine.l2_bytes / 2
