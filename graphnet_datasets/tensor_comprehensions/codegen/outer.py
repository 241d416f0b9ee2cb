"""Sharing of outermost loops between nests, to keep data in the cache from one nest to the next.

A normalization reads its input twice: to compute statistics of a row and to apply them. If both
nests share the loop over rows, the second read hits the cache. Dependences decide which loops may
be shared; sizes decide whether it pays.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Sequence

from ..language.instance import Instance
from ..polyhedral.dependences import Dependences
from ..polyhedral.fusion import Strategy, num_leading_shared
from .choices import Choices
from .choosing import BYTES_PER_CYCLE, choose_plan
from .coalescing import Coalesced, coalesce
from .elements import Dim, Nest, elements_of
from .machine import Machine
from .plans import Plan

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
    choices: Choices,
) -> list[Fused]:
    """Group the nests in order; each nest loses the loops that its group shares.

    By default the model of the processor decides between groups; "max" shares as many loops as
    possible, and "min" none.
    """
    groups: list[Fused] = []
    place = 0
    while place < len(nests):
        best = Fused((), (nests[place],))
        end = place + 1
        while strategy != "min" and end < len(nests):
            group = _group(
                instance, dependences, nests[place : end + 1], strategy, machine, choices
            )
            if group is None:
                break
            best = group
            end += 1
        groups.append(best)
        place += len(best.nests)
    return groups


def planned_nests(fused: Fused, machine: Machine, choices: Choices) -> list[tuple[Coalesced, Plan]]:
    """Return the nests of a group with merged loops, each with its plan."""
    if fused.dims:
        choices = dataclasses.replace(choices, parallel_depth=0)
    coalesced = [coalesce(nest) for nest in fused.nests]
    return [(nest, choose_plan(nest.nest, machine, choices)) for nest in coalesced]


def _group(
    instance: Instance,
    dependences: Dependences,
    nests: Sequence[Nest],
    strategy: Strategy,
    machine: Machine,
    choices: Choices,
) -> Fused | None:
    """Return the best way to share loops among all of these nests, or None if none pays."""
    candidates = [
        candidate
        for candidate in _share_loops(instance, dependences, nests)
        if _fits(instance, candidate, nests, strategy, machine, choices.threads)
    ]
    if strategy == "max" or not candidates:
        return candidates[0] if candidates else None

    def cycles(fused: Fused) -> float:
        """Return the cycles of a group on one core, without waiting for memory."""
        plans = planned_nests(fused, machine, choices)
        return fused.num_iterations * sum(plan.cycles for _, plan in plans)

    cheapest = min(candidates, key=cycles)
    apart = sum(cycles(Fused((), (nest,))) for nest in nests)
    saved = _shared_bytes(instance, nests) / BYTES_PER_CYCLE
    return cheapest if cycles(cheapest) <= apart + saved else None


def _share_loops(
    instance: Instance, dependences: Dependences, nests: Sequence[Nest]
) -> list[Fused]:
    """Return the groups that dependences allow, with the most shared leading loops first."""
    # A nest with begins is only part of a box.
    if any(nest.begins or nest.is_ordered for nest in nests):
        return []
    depth = min(len(nest.dims) for nest in nests)
    for position, later in enumerate(nests):
        for earlier in nests[:position]:
            for earlier_number in earlier.statements:
                for later_number in later.statements:
                    depth = min(
                        depth,
                        num_leading_shared(instance, dependences, earlier_number, later_number),
                    )
    return [
        Fused(
            nests[0].dims[:shared],
            tuple(dataclasses.replace(nest, dims=nest.dims[shared:]) for nest in nests),
        )
        for shared in range(depth, 0, -1)
    ]


def _fits(
    instance: Instance,
    fused: Fused,
    nests: Sequence[Nest],
    strategy: Strategy,
    machine: Machine,
    threads: int,
) -> bool:
    """Return whether sharing loops can save traffic: shared data fits in a cache only per
    iteration.
    """
    if fused.num_iterations < 2 * threads:
        return False
    names = {dim.name for dim in fused.dims}
    for nest in nests:
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
    num_bytes = _shared_bytes(instance, nests)
    part = num_bytes / fused.num_iterations
    if strategy == "max":
        return 0 < part <= machine.l2_bytes
    return num_bytes > machine.l2_bytes / 2 and part <= machine.l2_bytes / 2


def _shared_bytes(instance: Instance, nests: Sequence[Nest]) -> int:
    """Return the size of all tensors that several nests read or write."""
    counts = collections.Counter(
        tensor for nest in nests for tensor in {element.tensor for element in nest.elements()}
    )
    return sum(
        instance.tensor(tensor).num_elements * instance.tensor(tensor).dtype.itemsize
        for tensor, count in counts.items()
        if count > 1
    )
