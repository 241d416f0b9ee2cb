"""Execution order of the points of a plan, for legality checks and printing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..language.instance import Instance, InstanceStatement
from ..polyhedral.domains import has_initialisation, index_names, statement_name
from ..polyhedral.schedule import Loop, Nested, Schedule, StatementSchedule
from .coalescing import Coalesced
from .elements import Dim
from .machine import Machine
from .plans import Plan


def schedule_of(
    instance: Instance,
    groups: Sequence[tuple[tuple[Dim, ...], Sequence[Coalesced], Sequence[Plan]]],
    machine: Machine,
) -> Schedule:
    """Return the schedule of groups of nests, executed in order.

    A group consists of the parallel loops its nests share, the nests, and their plans. In a nest,
    the time of a point consists of: the block of each blocked loop, the tile of each loop, the
    block of terms (before the loops that read a packed panel), the phase (0 starts, 1 reduces, 2
    runs epilogues), the reductions, the point in the tile, and the position of the statement.
    """
    nested = []
    for dims, nests, plans in groups:
        group = [
            _nest_schedule(instance, nest, plan, machine)
            for nest, plan in zip(nests, plans, strict=True)
        ]
        nested.append(_shared(instance, dims, group) if dims else group[0])
    return Schedule(tuple(nested))


def _shared(instance: Instance, dims: tuple[Dim, ...], nests: list[Nested]) -> Nested:
    """Wrap nests in shared loops: time is the loops, the nest number, the time in the nest."""
    longest = max(nests, key=lambda nest: len(nest.loops))
    loops = [Loop(dim.name, "shared loop") for dim in dims]
    loops += [Loop("nest", "sequence"), *longest.loops]
    statements = []
    for place, nest in enumerate(nests):
        for statement in nest.statements:
            number = int(statement.name[1:])
            indices = instance.statements[number].indices
            outer = [
                f"{statement.indices[position]} - {indices[position].begin}"
                if indices[position].begin
                else statement.indices[position]
                for position in range(len(dims))
            ]
            time = [*outer, str(place), *statement.time]
            time += ["0"] * (len(loops) - len(time))
            statements.append(dataclasses.replace(statement, time=tuple(time)))
    note = "; ".join(nest.note for nest in nests)
    return Nested(tuple(loops), tuple(statements), len(dims), f"shared: {note}")


def _nest_schedule(instance: Instance, placed: Coalesced, plan: Plan, machine: Machine) -> Nested:
    nest = placed.nest
    lanes = machine.lanes(plan.real.itemsize) if plan.mode == "tile" else 1
    tiles = [
        Loop(
            f"{name} by {plan.step(name, lanes)}", "tile" if plan.step(name, lanes) > 1 else "loop"
        )
        for name in plan.order
    ]
    tiles.insert(_panel_place(plan), Loop(f"terms by {plan.k_block or 'all'}", "block"))
    loops = [Loop(f"{name} by {size}", "block") for name, size in plan.blocks] + tiles
    loops.append(Loop("start, sum, finish", "phase"))
    loops += [Loop(dim.name, "reduction") for dim in nest.reductions]
    loops += [Loop(name, "vector" if name == plan.vector else "point") for name in plan.order]
    loops.append(Loop("statement", "sequence"))
    updates = {update.statement for update in nest.updates}
    statements = []
    for place, number in enumerate(nest.statements):
        statement = instance.statements[number]
        for initial in (True, False) if has_initialisation(statement) else (False,):
            phase = 1 if number in updates and not initial else 0
            if not initial and number not in updates and number not in nest.starts:
                phase = 2
            statements.append(
                _statement(statement, number, initial, placed, plan, lanes, phase, place)
            )
    note = f"{plan.mode}, vector {plan.vector or 'none'} x {plan.num_vectors}"
    if plan.rows:
        note += ", rows " + " x ".join(f"{name}:{size}" for name, size in plan.rows)
    if plan.packed:
        note += ", operand packed " + ("first" if plan.packed.is_first else "by panels")
    return Nested(tuple(loops), tuple(statements), plan.num_parallel, note)


def _panel_place(plan: Plan) -> int:
    """Return the number of tile loops around the loop over blocks of terms."""
    is_panel = plan.packed is not None and not plan.packed.is_first
    return plan.order.index(plan.vector) + 1 if is_panel else len(plan.order)


def _statement(
    statement: InstanceStatement,
    number: int,
    initial: bool,
    placed: Coalesced,
    plan: Plan,
    lanes: int,
    phase: int,
    place: int,
) -> StatementSchedule:
    nest = placed.nest
    names = index_names(statement, initial)
    values = _dimension_values(statement, number, names, placed)
    blocks = [_floored(values[name], size) for name, size in plan.blocks]
    tiles = []
    for name in plan.order:
        step = plan.step(name, lanes)
        tiles.append(_floored(values[name], step))
    outermost = nest.reductions[0] if nest.reductions else None
    block = "0"
    if plan.k_block and outermost is not None:
        last = (outermost.extent - 1) // plan.k_block
        block = {0: "0", 2: str(last)}.get(
            phase, _floored(values.get(outermost.name, "0"), plan.k_block)
        )
    terms = [values[dim.name] if phase == 1 else "0" for dim in nest.reductions]
    points = [values[name] for name in plan.order]
    tiles.insert(_panel_place(plan), block)
    time = (*blocks, *tiles, str(phase), *terms, *points, str(place))
    begins, extents = dict(nest.begins), {}
    for parts in placed.parts.values():
        extents.update({part.name: part.extent for part in parts})
    conditions = []
    for position, name in enumerate(names[: len(statement.subscripts)]):
        dim = f"d{position}"
        if dim in begins:
            extent = extents.get(dim, 1)
            first = begins[dim] + statement.indices[position].begin
            if _is_descending(statement, position):
                first = statement.indices[position].end - begins[dim] - extent
            conditions.append(f"{first} <= {name} < {first + extent}")
    whole = [
        f"{index.begin} <= {name} < {index.end}"
        for name, index in zip(names, statement.indices, strict=False)
    ]
    return StatementSchedule(
        statement_name(number, initial),
        tuple(names),
        " and ".join([*whole, *conditions]),
        time,
    )


def _is_descending(statement: InstanceStatement, position: int) -> bool:
    scan = statement.scan
    return (
        scan is not None and scan.is_descending and statement.indices[position].name == scan.index
    )


def _floored(value: str, size: int) -> str:
    """Return the floored quotient in isl's syntax."""
    if size == 1:
        return value
    return f"floor({value}/{size})" if value.isidentifier() else f"floor(({value})/{size})"


def _dimension_values(
    statement: InstanceStatement, number: int, names: list[str], placed: Coalesced
) -> dict[str, str]:
    """Return the dimensions of the nest as isl expressions of the statement's indices."""
    begins = dict(placed.nest.begins)
    renamed = dict(dict(placed.nest.renamed).get(number, ()))
    old: dict[str, str] = {}
    for position, name in enumerate(names):
        index = statement.indices[position]
        rank = len(statement.subscripts)
        dim = f"d{position}" if position < rank else f"r{position - rank}"
        dim = renamed.get(dim, dim)
        begin = index.begin + begins.get(dim, 0)
        old[dim] = f"({name} - {begin})" if begin else name
        if _is_descending(statement, position):
            old[dim] = f"({index.end - 1 - begins.get(dim, 0)} - {name})"
    values = {}
    for dim, parts in placed.parts.items():
        value = ""
        for part in parts:
            part_value = old.get(part.name, "0")
            value = f"({value})*{part.extent} + {part_value}" if value else part_value
        values[dim] = value or "0"
    return values
