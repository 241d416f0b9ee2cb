"""Choosing a plan: a small model of what a register tile costs, in cycles.

A step of a tile costs the largest of its multiply-adds (one vector a cycle), its loads (one vector
or two scalars a cycle) and the latency of a chain of additions (four cycles). All tiles that fit
into the registers are tried; the rest of a dimension that no whole tile fills counts as it is.
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
"""A row of a table, most of the wait for it hidden by asking ahead."""
FAR_BYTES = 2048
NUM_FAR_ROWS = 8
"""The ways of the first cache: so many rows that are a page apart fit at once."""
BYTES_PER_CYCLE = 6.0
"""What a processor reads from memory while others do too."""
_CACHED_BYTES = 4 << 20
_MAX_ROWS = 16


def choose_plan(nest: Nest, machine: Machine, choices: Choices) -> Plan:
    """Return the plan that the model says is fastest, within what `choices` leave open."""
    real = real_type(nest)
    candidates: list[Plan] = []
    if real is not None and not choices.is_scalar:
        candidates = _candidates(nest, real, machine, choices)
    if not candidates:
        return scalar_plan(nest, real or nest_type(nest), choices)
    best = min(candidates, key=lambda each: each.cycles)
    return with_loops(nest, best, machine, choices)


def nest_type(nest: Nest) -> ScalarType:
    """Return the type of a nest's last statement."""
    return (*nest.updates, *nest.epilogues)[-1].type


def _candidates(nest: Nest, real: ScalarType, machine: Machine, choices: Choices) -> list[Plan]:
    found: list[Plan] = []
    outputs = [each.name for each in nest.dims]
    wanted = choices.vector_index
    for place, dim in enumerate(outputs):
        if wanted is not None and place != wanted % max(1, len(outputs)):
            continue
        if all(can_vectorise(each, dim, real) for each in nest.expressions()):
            found += _tile_plans(nest, dim, real, machine, choices)
    if nest.updates and nest.reductions:
        dim = nest.reductions[-1].name
        values = [each.value for each in nest.updates]
        contiguous = any(each.offset.coefficient(dim) == 1 for each in Traffic.of(nest).elements)
        if contiguous and all(can_vectorise(each, dim, real) for each in values):
            found += _lane_plans(nest, dim, real, machine, choices)
    return found


def _tile_plans(
    nest: Nest, vector: str, real: ScalarType, machine: Machine, choices: Choices
) -> list[Plan]:
    lanes = machine.lanes(real.itemsize)
    traffic, extents = Traffic.of(nest), nest.extents
    extent = extents[vector]
    pack = _packable(nest, vector, traffic, choices)
    others = [each.name for each in nest.dims if each.name != vector]
    reach = [
        name
        for name in others
        if any(each.offset.coefficient(name) == 0 for each in traffic.elements)
        and nest.reductions
        # A panel of the packed operand is of one value of each other dimension that it has.
        and not (pack is not None and pack.element.offset.coefficient(name))
    ]
    options = {name: divisor_tiles(extents[name], _MAX_ROWS) for name in reach}
    vectors_needed = math.ceil(extent / lanes)
    widths = sorted({min(each, vectors_needed) for each in (1, 2, 3, 4)})
    found = []
    pairs = [(), *((each,) for each in reach), *itertools.combinations(reach, 2)]
    micro = choices.micro
    for names in pairs:
        for sizes in itertools.product(*(options[each] for each in names)):
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
                found.append(dataclasses.replace(plan, cycles=cycles))
    if micro and not found:  # no tile has that form: the limits on it are dropped
        return _tile_plans(nest, vector, real, machine, dataclasses.replace(choices, micro=None))
    return found


def _live(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    vector: str,
    pack: Packed | None,
    traffic: Traffic,
    width: int,
) -> int:
    """Return how many registers a tile needs besides its accumulators.

    The vectors of one row, and one broadcast; where rows of the vector's operand follow each other,
    the broadcasts are kept for all of them.
    """
    vector_rows = broadcasts = 1
    for each in traffic.elements:
        is_vector = each.offset.coefficient(vector) or (pack is not None and pack.element == each)
        size = math.prod(
            size for name, size in zip(names, sizes, strict=True) if each.offset.coefficient(name)
        )
        if is_vector:
            vector_rows = max(vector_rows, size)
        else:
            broadcasts = max(broadcasts, size)
    kept = broadcasts if vector_rows > 1 else 1
    return width * max(1, min(2, len(traffic.elements) - 1)) + kept + 1


def _tile_cycles(nest: Nest, plan: Plan, traffic: Traffic, lanes: int) -> float:
    extents = nest.extents
    steps = math.prod(each.extent for each in nest.reductions)
    spread = [
        pieces(math.ceil(extents[plan.vector] / lanes), plan.num_vectors),
        *(pieces(extents[name], tile) for name, tile in plan.rows),
    ]
    names = [plan.vector, *(name for name, _ in plan.rows)]
    around = math.prod(each.extent for each in nest.dims if each.name not in names)
    total = 0.0
    for combination in itertools.product(*spread):
        count = math.prod(many for many, _ in combination)
        sizes = dict(zip(names, (size for _, size in combination), strict=True))
        width = sizes[plan.vector]
        points = math.prod(sizes.values())
        vector_loads = scalar_loads = misses = 0.0
        for each in traffic.elements:
            times = math.prod(
                size
                for name, size in sizes.items()
                if name != plan.vector and each.offset.coefficient(name)
            )
            step = each.offset.coefficient(plan.vector)
            # Rows a page or more apart share the few places of the first cache with each other.
            far = [
                size
                for name, size in sizes.items()
                if abs(each.offset.coefficient(name)) * plan.real.itemsize >= FAR_BYTES
            ]
            is_packed = plan.packed is not None and plan.packed.element == each
            if far and not is_packed:
                misses += times * (0.5 if math.prod(far) > NUM_FAR_ROWS else 0.05)
            if each.gathers:
                misses += GATHER_CYCLES * math.prod(
                    size
                    for name, size in sizes.items()
                    if any(varies(subscript, name) for _, subscript, _ in each.gathers)
                )
            if plan.packed is not None and plan.packed.element == each:
                vector_loads += width
            elif step == 0:
                scalar_loads += times
            elif step == 1:
                vector_loads += times * width
            else:
                vector_loads += times * width * lanes
        arithmetic = points * max(1, traffic.operations // 2 if nest.updates else 1)
        one = max(arithmetic, vector_loads + scalar_loads / 2, LATENCY if nest.updates else 0)
        one += 0.5 + misses
        stores = 0.0
        for each in (*nest.updates, *nest.epilogues):
            is_dense = each.target.offset.coefficient(plan.vector) == 1
            stores += points * (2 if is_dense else 3 * lanes)
        total += count * (steps * one + stores + 12)
    total *= around
    if plan.packed is not None:
        held = [extents[name] for name in extents if plan.packed.element.offset.coefficient(name)]
        dense = plan.packed.element.offset.coefficient(plan.vector) == 1
        total += math.prod(held) * (0.15 if dense else 0.6)
        total += _reread_cycles(nest, plan, traffic, lanes)
    return total


def _reread_cycles(nest: Nest, plan: Plan, traffic: Traffic, lanes: int) -> float:
    """Return what it costs that every panel of the packed operand reads the other one again."""
    assert plan.packed is not None  # noqa: S101 (the caller has looked)
    extents = nest.extents
    packed = plan.packed.element
    size = plan.real.itemsize * math.prod(
        extents.get(name, 1) for name, _ in packed.offset.coefficients
    )
    panels = math.ceil(extents[plan.vector] / (plan.num_vectors * lanes))
    if size <= MAX_PACKED_FIRST_BYTES:
        return 0.0
    total = 0.0
    for each in traffic.elements:
        if each == packed or each.offset.coefficient(plan.vector):
            continue
        num_bytes = plan.real.itemsize * math.prod(
            extents.get(name, 1) for name, _ in each.offset.coefficients
        )
        if num_bytes > _CACHED_BYTES:
            total += num_bytes * (panels - 1) / BYTES_PER_CYCLE
    return total


def _packable(nest: Nest, vector: str, traffic: Traffic, choices: Choices) -> Packed | None:
    """Return the operand to pack: used by many rows, and strided or scattered where it lies."""
    if not nest.reductions or choices.pack == "never":
        return None
    extents = nest.extents
    for each in traffic.elements:
        step = each.offset.coefficient(vector)
        if not step or each.gathers or each.is_guarded or len(nest.updates) != 1:
            continue
        if each.type.itemsize < 4:  # what is packed is copied as it is
            continue
        free = [
            dim.name
            for dim in nest.dims
            if dim.name != vector and not each.offset.coefficient(dim.name)
        ]
        uses = math.prod(extents[name] for name in free)
        if not _is_separable(each, nest) or uses < 4:
            continue
        if step != 1:
            return Packed(each, False)
        ragged = extents[vector] % 16 != 0
        if (uses >= 16 or ragged or choices.pack == "always") and _row_bytes(each, nest) > 256:
            return Packed(each, False)
    return None


def _row_bytes(element: Element, nest: Nest) -> int:
    """Return how far apart two steps of the innermost reduction read."""
    inner = [element.offset.coefficient(each.name) for each in nest.reductions]
    return 4 * abs(inner[-1]) if inner else 0


def _is_separable(element: Element, nest: Nest) -> bool:
    """Tell whether each place of an operand belongs to one point of its dimensions.

    Not so in a convolution, where `h + p` walks over the same rows again.
    """
    extents = nest.extents
    # Loops that nests share stand still here.
    held = sorted(
        (abs(step), extents[name]) for name, step in element.offset.coefficients if name in extents
    )
    reach = 0
    for step, extent in held:
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


def _lane_plans(
    nest: Nest, dim: str, real: ScalarType, machine: Machine, choices: Choices
) -> list[Plan]:
    lanes = machine.lanes(real.itemsize)
    traffic, extents = Traffic.of(nest), nest.extents
    steps = math.prod(each.extent for each in nest.reductions) / extents[dim]
    points = math.prod(each.extent for each in nest.dims)
    found = []
    outer = [each.name for each in nest.dims]
    shared = [
        name for name in outer if any(not e.offset.coefficient(name) for e in traffic.elements)
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
                * (1 if each.offset.coefficient(dim) in (0, 1) else lanes)
                * math.prod(size for name, size in rows if each.offset.coefficient(name))
                for each in traffic.elements
            )
            work = num_rows * width * max(1, traffic.operations // 2)
            whole, rest = divmod(extents[dim], width * lanes)
            rest_steps = math.ceil(rest / lanes)
            one = whole * max(loads, work, LATENCY) + rest_steps * max(
                loads / width, work / width, LATENCY
            )
            ends = num_rows * len(nest.updates) * (width + 20)
            cycles = points / num_rows * (steps * (one + 4) + ends)
            found.append(Plan("lanes", real, dim, width, rows, (), cycles=cycles))
    if choices.micro and not found:
        return _lane_plans(nest, dim, real, machine, dataclasses.replace(choices, micro=None))
    return found
