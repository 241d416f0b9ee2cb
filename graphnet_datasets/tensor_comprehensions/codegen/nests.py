"""Statements that share their points, gathered into nests.

A statement joins the nest before it when everything that passes between them stays at one point of
the output: a bias or an activation after a product, a second reduction of the same data, a start
that the reduction after it goes on from. The schedule that follows is checked against the
dependences like any other (see `polyhedral.legality`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..language.affine import Affine
from ..language.expressions import Binary, Expression, Index, cast
from ..language.instance import Instance, InstanceStatement
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
    """Return the nest of one statement."""
    statement = instance.statements[number]
    names = index_places(statement)
    tensor = instance.tensor(statement.output)
    target = target_of(statement, tensor, names)
    value = linear_value(statement.value, instance, names)
    rank = len(statement.subscripts)
    by_position = {each.name: each for each in statement.indices}
    dims = tuple(
        Dim(f"d{place}", by_position[name].extent)
        for place, name in enumerate(statement.subscripts)
    )
    reductions = tuple(
        Dim(f"r{place}", each.extent) for place, each in enumerate(statement.indices[rank:])
    )
    if statement.operator == "=" or (not reductions and statement.initialises):
        assign = Assign(number, target, value, statement.type)
        return Nest(dims, (), (), (assign,))
    if not reductions:  # an update without a reduction is an assignment that reads its target
        before = _load_of(target, statement)
        combined = Binary(statement.operator, before, value, statement.type)
        return Nest(dims, (), (), (Assign(number, target, combined, statement.type),))
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


def _load_of(target: Element, statement: InstanceStatement) -> Expression:
    return cast(leaf(target), statement.type)


def index_places(statement: InstanceStatement) -> dict[str, Affine]:
    """Return each index of a statement as a dimension of its nest plus where its range begins."""
    begins = {each.name: each.begin for each in statement.indices}
    places = {
        name: Affine.index(f"d{place}") + begins[name]
        for place, name in enumerate(statement.subscripts)
    }
    for place, each in enumerate(statement.reductions):
        places[each.name] = Affine.index(f"r{place}") + each.begin
    return places


def gather_nests(
    instance: Instance, groups: Sequence[Sequence[int]], *, joins_reductions: bool = True
) -> list[Nest]:
    """Return the nests of groups of statements; a group that is not one nest gives several.

    Args:
        joins_reductions: whether two reductions may be one pass.
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
    """Return both as one nest, None where their points differ or data passes between points."""
    if first.dims != second.dims:
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
    """Join an assignment with the reduction that goes on from it."""
    (update,) = second.updates
    if update.start != "memory" or len(first.epilogues) != 1 or first.updates:
        return None
    (assign,) = first.epilogues
    if assign.target != update.target or assign.type != update.type:
        return None
    reads = {each.tensor for each in elements_of(update.value)}
    if assign.target.tensor in reads or assign.type != assign.target.type:
        return None
    started = dataclasses.replace(update, start=assign.value)
    return Nest(second.dims, second.reductions, (started,), (), (assign.statement,))


def _join_update(first: Nest, second: Nest) -> Nest | None:
    """Join a reduction over the same box that shares data with the first one's."""
    renamed = _match_reductions(first, second)
    if renamed is None or not _is_independent(first, renamed):
        return None
    return dataclasses.replace(
        first,
        updates=(*first.updates, *renamed.updates),
        renamed=(*first.renamed, *renamed.renamed),
    )


def _match_reductions(first: Nest, second: Nest) -> Nest | None:
    """Rename the second's reductions so that a read of a shared tensor is the same in both."""
    if sorted(each.extent for each in first.reductions) != sorted(
        each.extent for each in second.reductions
    ):
        return None
    ours = {each for value in first.updates for each in elements_of(value.value)}
    theirs = [each for value in second.updates for each in elements_of(value.value)]
    for candidate in theirs:
        for known in ours:
            if known.tensor != candidate.tensor or known.gathers or candidate.gathers:
                continue
            names = _renaming(first, second, known.offset, candidate.offset)
            if names is not None:
                return _rename(second, names, first.reductions)
    return None


def _renaming(first: Nest, second: Nest, known: Affine, other: Affine) -> dict[str, str] | None:
    names: dict[str, str] = {}
    extents = first.extents
    for dim in second.reductions:
        step = other.coefficient(dim.name)
        matches = [
            each.name
            for each in first.reductions
            if each.name not in names.values()
            and known.coefficient(each.name) == step
            and extents[each.name] == dim.extent
        ]
        if not matches:
            return None
        names[dim.name] = matches[0]
    renamed = Affine.of(
        {names.get(name, name): each for name, each in other.coefficients}, other.constant
    )
    return names if renamed == known else None


def _rename(nest: Nest, names: dict[str, str], reductions: tuple[Dim, ...]) -> Nest:
    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element):
            offset = Affine.of(
                {names.get(name, name): each for name, each in node.offset.coefficients},
                node.offset.constant,
            )
            return dataclasses.replace(node, offset=offset)
        if isinstance(node, Index):
            return dataclasses.replace(node, name=names.get(node.name, node.name))
        return None

    updates = tuple(
        dataclasses.replace(each, value=rewrite(each.value, change)) for each in nest.updates
    )
    renamed = tuple((each.statement, tuple(names.items())) for each in updates)
    return dataclasses.replace(nest, updates=updates, reductions=reductions, renamed=renamed)


def _written(nest: Nest) -> dict[str, set[Affine]]:
    places: dict[str, set[Affine]] = {}
    for each in (*nest.updates, *nest.epilogues):
        places.setdefault(each.target.tensor, set()).add(each.target.offset)
    return places


def _is_independent(first: Nest, second: Nest) -> bool:
    """Tell whether neither touches what the other writes."""
    ours, theirs = _written(first), _written(second)
    if set(ours) & set(theirs):
        return False
    reads = {each.tensor for value in second.expressions() for each in elements_of(value)}
    if reads & set(ours):
        return False
    reads = {each.tensor for value in first.expressions() for each in elements_of(value)}
    return not reads & set(theirs)


def _is_pointwise(first: Nest, second: Nest) -> bool:
    """Tell whether all that passes between the two stays at one point of the output.

    An epilogue must not write what a reduction of the nest still reads, nor at another point.
    """
    ours, theirs = _written(first), _written(second)
    for name, places in theirs.items():
        if name in ours and ours[name] != places:
            return False
    updated = {each for value in first.updates for each in elements_of(value.value)}
    if {each.tensor for each in updated} & set(theirs):
        return False
    for value in second.expressions():
        for each in elements_of(value):
            if each.tensor in ours and (each.gathers or ours[each.tensor] != {each.offset}):
                return False
    for value in first.expressions():
        for each in elements_of(value):
            if each.tensor in theirs and (each.gathers or theirs[each.tensor] != {each.offset}):
                return False
    return all(len(each) == 1 for each in (*ours.values(), *theirs.values()))
