"""Loops around a register tile: order, blocks and parallel loops."""

from __future__ import annotations

import dataclasses
import math

from ..language.types import ScalarType
from .choices import Choices
from .elements import Nest
from .machine import Machine
from .plans import Plan, Traffic

PARALLEL_CYCLES = 60_000
"""Threads do not pay below this much work (20 µs)."""
MAX_PACKED_FIRST_BYTES = 512 * 1024


def scalar_plan(nest: Nest, real: ScalarType, choices: Choices) -> Plan:
    """Return a plan of plain loops over single points."""
    cycles = nest.num_points * 2.0
    order = nest.order
    plan = Plan("scalar", real, "", 1, (), order, cycles=cycles)
    plan = dataclasses.replace(plan, blocks=_blocks(nest, plan, 1, choices))
    return dataclasses.replace(plan, num_parallel=_num_parallel(nest, plan, 1, choices))


def with_loops(nest: Nest, plan: Plan, machine: Machine, choices: Choices) -> Plan:
    """Choose the loops around a tile: their order, the packing and the parallel loops."""
    lanes = machine.lanes(plan.real.itemsize)
    names = [dim.name for dim in nest.dims]
    extents = nest.extents
    if plan.packed is not None:
        packed_dims = [name for name in names if plan.packed.element.offset.coefficient(name)]
        free = [name for name in names if name not in packed_dims]
        num_bytes = plan.real.itemsize * math.prod(
            extents[name] for name in extents if plan.packed.element.offset.coefficient(name)
        )
        panels = math.prod(
            math.ceil(extents[name] / plan.step(name, lanes)) for name in packed_dims
        )
        row_tiles = math.prod(math.ceil(extents[name] / plan.step(name, lanes)) for name in free)
        is_small = num_bytes <= MAX_PACKED_FIRST_BYTES and packed_dims == [plan.vector]
        if is_small and row_tiles >= 4 * choices.threads and row_tiles > panels:
            # Each row of the other operand is read once for all panels.
            packed = dataclasses.replace(plan.packed, is_first=True)
            plan = dataclasses.replace(plan, order=(*free, *packed_dims), packed=packed)
        else:
            outer = [name for name in packed_dims if name != plan.vector]
            block = _k_block(nest, choices)
            plan = dataclasses.replace(plan, order=(*outer, plan.vector, *free), k_block=block)
    else:
        plan = dataclasses.replace(plan, order=nest.order)
    has_gather = any(element.gathers for element in Traffic.of(nest).elements)
    prefetch = choices.prefetch if choices.prefetch is not None else (8 if has_gather else 0)
    blocks = _blocks(nest, plan, lanes, choices)
    plan = dataclasses.replace(plan, prefetch=prefetch, unroll=choices.unroll, blocks=blocks)
    return dataclasses.replace(plan, num_parallel=_num_parallel(nest, plan, lanes, choices))


def _blocks(nest: Nest, plan: Plan, lanes: int, choices: Choices) -> tuple[tuple[str, int], ...]:
    """Return the loops that run in more than one block, with the block sizes."""
    wanted = dict(zip((dim.name for dim in nest.dims), choices.tile or (), strict=False))
    blocks = []
    for name in plan.order:
        step = plan.step(name, lanes)
        size = math.ceil(wanted.get(name, 0) / step) * step
        if step <= size < nest.extents[name]:
            blocks.append((name, size))
    return tuple(blocks)


def _k_block(nest: Nest, choices: Choices) -> int:
    """Return the number of outermost reduction values between two stores, or 0 for all values."""
    (update,) = nest.updates
    if update.target.type != update.type or not nest.reductions:
        return 0
    inner = math.prod(dim.extent for dim in nest.reductions[1:])
    outermost = nest.reductions[0].extent
    block = max(1, choices.k_block // inner)
    if outermost <= block * 3 // 2:
        return 0
    return math.ceil(outermost / math.ceil(outermost / block))


def _num_parallel(nest: Nest, plan: Plan, lanes: int, choices: Choices) -> int:
    """Return the number of parallel outer loops: enough for all threads, or 0 for little work."""
    if choices.threads == 1 or plan.cycles < PARALLEL_CYCLES or choices.parallel_depth == 0:
        return 0
    extents = nest.extents
    loops = list(plan.blocks) or [(name, plan.step(name, lanes)) for name in plan.order]
    limit = sum(name not in nest.serial for name, _ in loops)
    if plan.packed is not None and not plan.packed.is_first and not plan.blocks:
        limit = plan.order.index(plan.vector) + 1
    count, depth = 1, 0
    while depth < limit and (
        count < 4 * choices.threads
        if choices.parallel_depth is None
        else depth < choices.parallel_depth
    ):
        name, size = loops[depth]
        count *= math.ceil(extents[name] / size)
        depth += 1
    return depth if count > 1 else 0
