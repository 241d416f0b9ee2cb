"""Grouping of statements that share their points into nests.

A statement joins the preceding nest if all data between them stays at one point of the output: a
bias or an activation after a product, a second reduction of the same data, or an initial value that
the following reduction continues from. The resulting schedule is checked against the dependences
like any other (see `polyhedral.legality`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..language.affine import Affine
from ..language.expressions import Binary, Cast, Constant, Expression, Index, Select
from ..language.instance import Instance, InstanceStatement
from ..language.types import BOOL
from .elements import (
    Assign,
    Dim,
    Element,
    Nest,
    Update,
    elements_of,
    leaf,
    linear_value,
    rewrite,
    target_of,
)


def nest_of(instance: Instance, number: int) -> Nest:
    """Return the nest of a single statement."""
    statement = instance.statements[number]
    names = index_places(statement)
    target = target_of(statement, instance, names)
    value = linear_value(statement.value, instance, names)
    rank = len(statement.subscripts)
    by_position = {index.name: index for index in statement.indices}
    dims = tuple(
        Dim(f"d{place}", by_position[name].extent)
        for place, name in enumerate(statement.subscripts)
    )
    reductions = tuple(
        Dim(f"r{place}", index.extent) for place, index in enumerate(statement.indices[rank:])
    )
    if statement.operator == "=" or (not reductions and statement.initialises):
        assign = Assign(number, target, value, statement.type)
        return Nest(dims, (), (), (assign,), serial=_serial(statement))
    if not reductions:  # an update without a reduction is an assignment that reads its target
        before = _load_of(target, statement)
        combined: Expression = Binary(statement.operator, before, value, statement.type)
        for _, subscript, limit in target.gathers:
            if limit:  # points out of range update nothing
                first = Constant(0, subscript.type)
                end = Constant(limit, subscript.type)
                for is_inside in (
                    Binary(">=", subscript, first, BOOL),
                    Binary("<", subscript, end, BOOL),
                ):
                    combined = Select(is_inside, combined, before, statement.type)
        assign = Assign(number, target, combined, statement.type)
        return Nest(dims, (), (), (assign,), serial=_serial(statement))
    update = Update(
        number,
        target,
        statement.operator,
        "identity" if statement.initialises else "memory",
        value,
        statement.type,
        statement.identity,
    )
    return Nest(dims, reductions, (update,), ())


def _serial(statement: InstanceStatement) -> tuple[str, ...]:
    """Return the dimensions of a scan or scatter along which points may touch one element."""
    if statement.scan is not None:
        return (f"d{statement.subscripts.index(statement.scan.index)}",)
    if statement.target is None:
        return ()
    checks = statement.target.checks or ("",) * len(statement.target.subscripts)
    distinct = {
        subscript.names[0]
        for subscript, check in zip(statement.target.subscripts, checks, strict=True)
        if isinstance(subscript, Affine) and len(subscript.names) == 1 and not check
    }
    return tuple(
        f"d{place}" for place, name in enumerate(statement.subscripts) if name not in distinct
    )


def _load_of(target: Element, statement: InstanceStatement) -> Expression:
    before = leaf(target)
    return before if target.type == statement.type else Cast(before, statement.type)


def index_places(statement: InstanceStatement) -> dict[str, Affine]:
    """Return the indices of a statement as dimensions of its nest.

    A dimension begins at 0 and has the direction in which its index is executed.
    """
    begins = {index.name: index.begin for index in statement.indices}
    places = {
        name: Affine.index(f"d{place}") + begins[name]
        for place, name in enumerate(statement.subscripts)
    }
    if statement.scan is not None and statement.scan.is_descending:
        name = statement.scan.index
        place = Affine.index(f"d{statement.subscripts.index(name)}")
        places[name] = -place + (statement.box[name][1] - 1)
    for place, index in enumerate(statement.reductions):
        places[index.name] = Affine.index(f"r{place}") + index.begin
    return places


def gather_nests(
    instance: Instance, groups: Sequence[Sequence[int]], *, joins_reductions: bool = True
) -> list[Nest]:
    """Return the nests of groups of statements; a group may result in several nests.

    Args:
        joins_reductions: whether two reductions may share a pass.
    """
    nests: list[Nest] = []
    for group in groups:
        current: Nest | None = None
        for number in group:
            alone = nest_of(instance, number)
            is_second = current is not None and current.updates and alone.updates
            may_join = current is not None and (joins_reductions or not is_second)
            joined = join(current, alone) if current is not None and may_join else None
            if joined is None:
                if current is not None:
                    nests.append(current)
                joined = alone
            current = joined
        if current is not None:
            nests.append(current)
    return nests


def join(first: Nest, second: Nest) -> Nest | None:
    """Merge two nests, or return None if their points differ or data passes between points."""
    if first.dims != second.dims or first.is_ordered or second.is_ordered:
        return None
    if not second.reductions:
        return _join_epilogue(first, second)
    if first.reductions:
        return _join_update(first, second)
    return _join_start(first, second)


def _join_epilogue(first: Nest, second: Nest) -> Nest | None:
    if not _is_pointwise(first, second):
        return None
    return dataclasses.replace(first, epilogues=(*first.epilogues, *second.epilogues))


def _join_start(first: Nest, second: Nest) -> Nest | None:
    """Join an assignment with the reduction that continues from it."""
    (update,) = second.updates
    if update.start != "memory" or len(first.epilogues) != 1 or first.updates:
        return None
    (assign,) = first.epilogues
    if assign.target != update.target or assign.type != update.type:
        return None
    reads = {element.tensor for element in elements_of(update.value)}
    if assign.target.tensor in reads or assign.type != assign.target.type:
        return None
    started = dataclasses.replace(update, start=assign.value)
    return Nest(second.dims, second.reductions, (started,), (), (assign.statement,))


def _join_update(first: Nest, second: Nest) -> Nest | None:
    """Join a reduction over the same box that shares data with the first."""
    renamed = _match_reductions(first, second)
    if renamed is None or not _is_independent(first, renamed):
        return None
    return dataclasses.replace(
        first,
        updates=(*first.updates, *renamed.updates),
        renamed=(*first.renamed, *renamed.renamed),
    )


def _match_reductions(first: Nest, second: Nest) -> Nest | None:
    """Rename the reductions of `second` so that both read a shared tensor at the same offset."""
    if sorted(dim.extent for dim in first.reductions) != sorted(
        dim.extent for dim in second.reductions
    ):
        return None
    ours = {element for update in first.updates for element in elements_of(update.value)}
    theirs = [element for update in second.updates for element in elements_of(update.value)]
    for candidate in theirs:
        for element in ours:
            if element.tensor != candidate.tensor or element.gathers or candidate.gathers:
                continue
            names = _renaming(first, second, element.offset, candidate.offset)
            if names is not None:
                return _rename(second, names, first.reductions)
    return None


def _renaming(
    first: Nest, second: Nest, offset: Affine, renamed_offset: Affine
) -> dict[str, str] | None:
    names: dict[str, str] = {}
    extents = first.extents
    for dim in second.reductions:
        step = renamed_offset.coefficient(dim.name)
        matches = [
            candidate.name
            for candidate in first.reductions
            if candidate.name not in names.values()
            and offset.coefficient(candidate.name) == step
            and extents[candidate.name] == dim.extent
        ]
        if not matches:
            return None
        names[dim.name] = matches[0]
    renamed = Affine.of(
        {names.get(name, name): coefficient for name, coefficient in renamed_offset.coefficients},
        renamed_offset.constant,
    )
    return names if renamed == offset else None


def _rename(nest: Nest, names: dict[str, str], reductions: tuple[Dim, ...]) -> Nest:
    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element):
            offset = Affine.of(
                {
                    names.get(name, name): coefficient
                    for name, coefficient in node.offset.coefficients
                },
                node.offset.constant,
            )
            return dataclasses.replace(node, offset=offset)
        if isinstance(node, Index):
            return dataclasses.replace(node, name=names.get(node.name, node.name))
        return None

    updates = tuple(
        dataclasses.replace(update, value=rewrite(update.value, change)) for update in nest.updates
    )
    renamed = tuple((update.statement, tuple(names.items())) for update in updates)
    return dataclasses.replace(nest, updates=updates, reductions=reductions, renamed=renamed)


def _written(nest: Nest) -> dict[str, set[Affine]]:
    places: dict[str, set[Affine]] = {}
    for statement in (*nest.updates, *nest.epilogues):
        places.setdefault(statement.target.tensor, set()).add(statement.target.offset)
    return places


def _is_independent(first: Nest, second: Nest) -> bool:
    """Return whether neither nest accesses a tensor that the other writes."""
    ours, theirs = _written(first), _written(second)
    if set(ours) & set(theirs):
        return False
    reads = {element.tensor for value in second.expressions() for element in elements_of(value)}
    if reads & set(ours):
        return False
    reads = {element.tensor for value in first.expressions() for element in elements_of(value)}
    return not reads & set(theirs)


def _is_pointwise(first: Nest, second: Nest) -> bool:
    """Return whether all data between the nests stays at one point of the output.

    An epilogue must neither write a tensor that a reduction of the nest still reads, nor write a
    tensor at a different point.
    """
    ours, theirs = _written(first), _written(second)
    for name, places in theirs.items():
        if name in ours and ours[name] != places:
            return False
    updated = {element for value in first.updates for element in elements_of(value.value)}
    if {element.tensor for element in updated} & set(theirs):
        return False
    for value in second.expressions():
        for element in elements_of(value):
            if element.tensor in ours and (
                element.gathers or ours[element.tensor] != {element.offset}
            ):
                return False
    for value in first.expressions():
        for element in elements_of(value):
            if element.tensor in theirs and (
                element.gathers or theirs[element.tensor] != {element.offset}
            ):
                return False
    return all(len(offsets) == 1 for offsets in (*ours.values(), *theirs.values()))
