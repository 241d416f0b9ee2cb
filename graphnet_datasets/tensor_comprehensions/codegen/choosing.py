"""Choice of a plan with a model of the cycles of a register tile.

A step of a tile takes the maximum of its multiply-adds (one vector per cycle), its loads (one
vector or two scalars per cycle) and the latency of a chain of additions (four cycles). All tiles
that fit into the registers are compared; partial tiles at the end of a dimension are counted at
their actual size.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

from ..language.types import ScalarType
from .choices import Choices
from .elements import Element, Nest
from .machine import Machine
from .ordering import MAX_PACKED_FIRST_BYTES, scalar_plan, with_loops
from .plans import (
    Packed,
    Plan,
    Traffic,
    can_vectorise,
    divisor_tiles,
    pieces,
    real_type,
    varies,
)

LATENCY = 4
GATHER_CYCLES = 20
"""Cost of reading a table row, mostly hidden by prefetching."""
FAR_BYTES = 2048
NUM_FAR_ROWS = 8
"""Associativity of the L1 cache: number of rows a page apart that fit in it together."""
BYTES_PER_CYCLE = 6.0
"""Memory bandwidth per core while other cores read as well."""
_CACHED_BYTES = 4 << 20
_MAX_ROWS = 16


def choose_plan(nest: Nest, machine: Machine, choices: Choices) -> Plan:
    """Return the fastest plan according to the model, within the constraints of `choices`."""
    real = real_type(nest)
    candidates: list[Plan] = []
    if real is not None and not choices.is_scalar:
        candidates = _candidates(nest, real, machine, choices)
    if not candidates:
        return scalar_plan(nest, real or nest_type(nest), choices)
    best = min(candidates, key=lambda plan: plan.cycles)
    return with_loops(nest, best, machine, choices)


def nest_type(nest: Nest) -> ScalarType:
    """Return the type of the last statement of a nest."""
    return (*nest.updates, *nest.epilogues)[-1].type


def _candidates(nest: Nest, real: ScalarType, machine: Machine, choices: Choices) -> list[Plan]:
    plans: list[Plan] = []
    outputs = [dim.name for dim in nest.dims]
    wanted = choices.vector_index
    for place, dim in enumerate(outputs):
        if wanted is not None and place != wanted % max(1, len(outputs)):
            continue
        if dim in nest.serial:
            continue
        if all(can_vectorise(value, dim, real) for value in nest.expressions()):
            plans += _tile_plans(nest, dim, real, machine, choices)
    if nest.updates and nest.reductions:
        dim = nest.reductions[-1].name
        values = [update.value for update in nest.updates]
        contiguous = any(
            element.offset.coefficient(dim) == 1 for element in Traffic.of(nest).elements
        )
        if contiguous and all(can_vectorise(value, dim, real) for value in values):
            plans += _lane_plans(nest, dim, real, machine, choices)
    return plans


def _tile_plans(
    nest: Nest, vector: str, real: ScalarType, machine: Machine, choices: Choices
) -> list[Plan]:
    lanes = machine.lanes(real.itemsize)
    traffic, extents = Traffic.of(nest), nest.extents
    extent = extents[vector]
    pack = _packable(nest, vector, traffic, choices)
    others = [dim.name for dim in nest.dims if dim.name != vector]
    reach = [
        name
        for name in others
        if any(element.offset.coefficient(name) == 0 for element in traffic.elements)
        and nest.reductions
        # A panel of the packed operand has a single value of its other dimensions.
        and not (pack is not None and pack.element.offset.coefficient(name))
    ]
    options = {name: divisor_tiles(extents[name], _MAX_ROWS) for name in reach}
    vectors_needed = math.ceil(extent / lanes)
    widths = sorted({min(width, vectors_needed) for width in (1, 2, 3, 4)})
    plans = []
    pairs = [(), *((name,) for name in reach), *itertools.combinations(reach, 2)]
    micro = choices.micro
    for names in pairs:
        for sizes in itertools.product(*(options[name] for name in names)):
            if any(size == 1 for size in sizes):
                continue
            num_rows = math.prod(sizes)
            for width in widths:
                accumulators = num_rows * width * max(1, len(nest.updates))
                live = _live(names, sizes, vector, pack, traffic, width)
                if accumulators + live > machine.num_registers or num_rows > 28:
                    continue
                if micro and (num_rows > micro[0] or width != min(micro[1], vectors_needed)):
                    continue
                rows = tuple(zip(names, sizes, strict=True))
                plan = Plan("tile", real, vector, width, rows, (), pack)
                cycles = _tile_cycles(nest, plan, traffic, lanes)
                plans.append(dataclasses.replace(plan, cycles=cycles))
    if micro and not plans:  # no tile of this shape fits, so the constraint is dropped
        return _tile_plans(nest, vector, real, machine, dataclasses.replace(choices, micro=None))
    return plans


def _live(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    vector: str,
    pack: Packed | None,
    traffic: Traffic,
    width: int,
) -> int:
    """Return the number of registers a tile needs besides its accumulators.

    These are the vectors of one row and one broadcast; if several rows read different vectors, the
    broadcasts of all rows stay live.
    """
    vector_rows = broadcasts = 1
    for element in traffic.elements:
        is_vector = element.offset.coefficient(vector) or (
            pack is not None and pack.element == element
        )
        size = math.prod(
            size
            for name, size in zip(names, sizes, strict=True)
            if element.offset.coefficient(name)
        )
        if is_vector:
            vector_rows = max(vector_rows, size)
        else:
            broadcasts = max(broadcasts, size)
    live_broadcasts = broadcasts if vector_rows > 1 else 1
    return width * max(1, min(2, len(traffic.elements) - 1)) + live_broadcasts + 1


def _tile_cycles(nest: Nest, plan: Plan, traffic: Traffic, lanes: int) -> float:
    extents = nest.extents
    steps = math.prod(dim.extent for dim in nest.reductions)
    spread = [
        pieces(math.ceil(extents[plan.vector] / lanes), plan.num_vectors),
        *(pieces(extents[name], tile) for name, tile in plan.rows),
    ]
    names = [plan.vector, *(name for name, _ in plan.rows)]
    around = math.prod(dim.extent for dim in nest.dims if dim.name not in names)
    total = 0.0
    for combination in itertools.product(*spread):
        count = math.prod(many for many, _ in combination)
        sizes = dict(zip(names, (size for _, size in combination), strict=True))
        width = sizes[plan.vector]
        points = math.prod(sizes.values())
        vector_loads = scalar_loads = misses = 0.0
        for element in traffic.elements:
            times = math.prod(
                size
                for name, size in sizes.items()
                if name != plan.vector and element.offset.coefficient(name)
            )
            step = element.offset.coefficient(plan.vector)
            # Rows a page or more apart compete for the same L1 cache sets.
            far = [
                size
                for name, size in sizes.items()
                if abs(element.offset.coefficient(name)) * plan.real.itemsize >= FAR_BYTES
            ]
            is_packed = plan.packed is not None and plan.packed.element == element
            if far and not is_packed:
                misses += times * (0.5 if math.prod(far) > NUM_FAR_ROWS else 0.05)
            if element.gathers:
                misses += GATHER_CYCLES * math.prod(
                    size
                    for name, size in sizes.items()
                    if any(varies(subscript, name) for _, subscript, _ in element.gathers)
                )
            if plan.packed is not None and plan.packed.element == element:
                vector_loads += width
            elif step == 0:
                scalar_loads += times
            elif step == 1:
                vector_loads += times * width
            else:
                vector_loads += times * width * lanes
        arithmetic = points * max(1, traffic.operations // 2 if nest.updates else 1)
        step_cycles = max(
            arithmetic, vector_loads + scalar_loads / 2, LATENCY if nest.updates else 0
        )
        step_cycles += 0.5 + misses
        stores = 0.0
        for statement in (*nest.updates, *nest.epilogues):
            is_dense = statement.target.offset.coefficient(plan.vector) == 1
            stores += points * (2 if is_dense else 3 * lanes)
        total += count * (steps * step_cycles + stores + 12)
    total *= around
    if plan.packed is not None:
        dims = [extents[name] for name in extents if plan.packed.element.offset.coefficient(name)]
        dense = plan.packed.element.offset.coefficient(plan.vector) == 1
        total += math.prod(dims) * (0.15 if dense else 0.6)
        total += _reread_cycles(nest, plan, traffic, lanes)
    return total


def _reread_cycles(nest: Nest, plan: Plan, traffic: Traffic, lanes: int) -> float:
    """Return the cycles spent because every packed panel reads the other operand again."""
    assert plan.packed is not None  # noqa: S101 (checked by the caller)
    extents = nest.extents
    packed = plan.packed.element
    size = plan.real.itemsize * math.prod(
        extents.get(name, 1) for name, _ in packed.offset.coefficients
    )
    panels = math.ceil(extents[plan.vector] / (plan.num_vectors * lanes))
    if size <= MAX_PACKED_FIRST_BYTES:
        return 0.0
    total = 0.0
    for element in traffic.elements:
        if element == packed or element.offset.coefficient(plan.vector):
            continue
        num_bytes = plan.real.itemsize * math.prod(
            extents.get(name, 1) for name, _ in element.offset.coefficients
        )
        if num_bytes > _CACHED_BYTES:
            total += num_bytes * (panels - 1) / BYTES_PER_CYCLE
    return total


def _packable(nest: Nest, vector: str, traffic: Traffic, choices: Choices) -> Packed | None:
    """Return the operand to pack: reused by many rows, and strided or scattered in memory."""
    if not nest.reductions or choices.pack == "never":
        return None
    extents = nest.extents
    for element in traffic.elements:
        step = element.offset.coefficient(vector)
        if not step or element.gathers or element.is_guarded or len(nest.updates) != 1:
            continue
        if element.type.itemsize < 4:  # packing does not convert
            continue
        free = [
            dim.name
            for dim in nest.dims
            if dim.name != vector and not element.offset.coefficient(dim.name)
        ]
        uses = math.prod(extents[name] for name in free)
        if not _is_separable(element, nest) or uses < 4:
            continue
        if step != 1:
            return Packed(element, False)
        ragged = extents[vector] % 16 != 0
        if (uses >= 16 or ragged or choices.pack == "always") and _row_bytes(element, nest) > 256:
            return Packed(element, False)
    return None


def _row_bytes(element: Element, nest: Nest) -> int:
    """Return the distance in bytes between two steps of the innermost reduction."""
    inner = [element.offset.coefficient(dim.name) for dim in nest.reductions]
    return 4 * abs(inner[-1]) if inner else 0


def _is_separable(element: Element, nest: Nest) -> bool:
    """Return whether each position of an operand belongs to a single point of its dimensions.

    This is not the case for a convolution, where `h + p` visits the same rows repeatedly.
    """
    extents = nest.extents
    # Loops shared with other nests are fixed here.
    strides = sorted(
        (abs(step), extents[name]) for name, step in element.offset.coefficients if name in extents
    )
    reach = 0
    for step, extent in strides:
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def _lane_plans(
    nest: Nest, dim: str, real: ScalarType, machine: Machine, choices: Choices
) -> list[Plan]:
    lanes = machine.lanes(real.itemsize)
    traffic, extents = Traffic.of(nest), nest.extents
    steps = math.prod(reduction.extent for reduction in nest.reductions) / extents[dim]
    points = math.prod(output.extent for output in nest.dims)
    plans = []
    outer = [output.name for output in nest.dims]
    shared = [
        name
        for name in outer
        if any(not element.offset.coefficient(name) for element in traffic.elements)
    ]
    row_choices: list[tuple[tuple[str, int], ...]] = [()]
    row_choices += [((name, tile),) for name in shared[-1:] for tile in (2, 4) if extents[name] > 1]
    for rows in row_choices:
        num_rows = math.prod(size for _, size in rows)
        for width in (1, 2, 4, 8):
            if num_rows * width * len(nest.updates) > machine.num_registers - 8:
                continue
            if width > max(1, math.ceil(extents[dim] / lanes)):
                continue
            if choices.micro and width != min(8, max(1, choices.micro[1] * 2)):
                continue
            loads = sum(
                width
                * (1 if element.offset.coefficient(dim) in (0, 1) else lanes)
                * math.prod(size for name, size in rows if element.offset.coefficient(name))
                for element in traffic.elements
            )
            work = num_rows * width * max(1, traffic.operations // 2)
            whole, rest = divmod(extents[dim], width * lanes)
            rest_steps = math.ceil(rest / lanes)
            run_cycles = whole * max(loads, work, LATENCY) + rest_steps * max(
                loads / width, work / width, LATENCY
            )
            ends = num_rows * len(nest.updates) * (width + 20)
            cycles = points / num_rows * (steps * (run_cycles + 4) + ends)
            plans.append(Plan("lanes", real, dim, width, rows, (), cycles=cycles))
    if choices.micro and not plans:
        return _lane_plans(nest, dim, real, machine, dataclasses.replace(choices, micro=None))
    return plans
