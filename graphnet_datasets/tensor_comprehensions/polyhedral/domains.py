"""Statements as integer sets: their points, reads and writes.

Statement k is `S<k>[indices]`; a reduction that starts from its identity has an additional
statement `I<k>[output indices]`. Tensors are `T<n>`. All names are generated, so isl parses no text
of a definition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..language.affine import Affine
from ..language.expressions import Load
from ..language.instance import Instance, InstanceStatement, Scan
from .isl import isl


@dataclasses.dataclass(frozen=True)
class Domains:
    """Sets and maps of an instance.

    Attributes:
        instance: the instance.
        domain: all points of all statements (union set).
        reads: maps points to the elements that their expressions read (union map).
        accumulates: maps points of reductions to the element they accumulate into.
        writes: maps points to the element that they write.
        initial: source order: maps points to `[statement, phase, indices…]` (union map).
        rank: length of these tuples.
    """

    instance: Instance
    domain: Any
    reads: Any
    accumulates: Any
    writes: Any
    initial: Any
    rank: int


def statement_name(number: int, is_initialisation: bool = False) -> str:
    """Return the name of a statement's set."""
    return f"{'I' if is_initialisation else 'S'}{number}"


def index_names(statement: InstanceStatement, is_initialisation: bool = False) -> list[str]:
    """Return the isl names of a statement's indices: `i0, i1, …` in order."""
    count = len(statement.subscripts) if is_initialisation else len(statement.indices)
    return [f"i{place}" for place in range(count)]


def has_initialisation(statement: InstanceStatement) -> bool:
    """Return whether a statement initialises its output before it reduces into it."""
    return statement.initialises and bool(statement.reductions)


def domains(instance: Instance, numbers: Sequence[int] | None = None) -> Domains:
    """Return the sets and maps of an instance; a gather may read any element.

    Args:
        numbers: the statements to include; None for all.
    """
    tensors = {tensor.name: place for place, tensor in enumerate(instance.tensors)}
    rank = 2 + max((len(statement.indices) for statement in instance.statements), default=0)
    sets: list[str] = []
    reads: list[str] = []
    accumulates: list[str] = []
    writes: list[str] = []
    orders: list[str] = []
    for number, statement in enumerate(instance.statements):
        if numbers is not None and number not in numbers:
            continue
        for initial in (True, False) if has_initialisation(statement) else (False,):
            names = index_names(statement, initial)
            space = f"{statement_name(number, initial)}[{', '.join(names)}]"
            bounds = _bounds(statement, names)
            sets.append(f"{space}{bounds}")
            place = [*names[: len(statement.subscripts)]]
            target = f"T{tensors[statement.output]}[{', '.join(place)}]{bounds}"
            if statement.target is not None:
                (target,) = _accesses(instance, statement, (statement.target,), names, tensors)
            writes.append(f"{space} -> {target}")
            order = [str(number), "0" if initial else "1", *_ordered(statement, names)]
            order += ["0"] * (rank - len(order))
            orders.append(f"{space} -> [{', '.join(order)}]{bounds}")
            if initial:
                continue
            # The target of a scatter is among its reads: its points keep their order.
            is_update = statement.reductions or not statement.initialises
            if statement.operator != "=" and is_update and statement.target is None:
                accumulates.append(f"{space} -> {target}")
            accesses = _accesses(instance, statement, statement.loads, names, tensors)
            reads += [f"{space} -> {access}" for access in accesses]
    library = isl()
    return Domains(
        instance,
        library.UnionSet(_union(sets)),
        library.UnionMap(_union(reads)),
        library.UnionMap(_union(accumulates)),
        library.UnionMap(_union(writes)),
        library.UnionMap(_union(orders)),
        rank,
    )


def _union(parts: list[str]) -> str:
    return "{ " + "; ".join(dict.fromkeys(parts)) + " }"


def _bounds(statement: InstanceStatement, names: list[str]) -> str:
    terms = [
        f"{index.begin} <= {name} < {index.end}"
        for name, index in zip(names, statement.indices, strict=False)
    ]
    return f" : {' and '.join(terms)}" if terms else ""


def _ordered(statement: InstanceStatement, names: list[str]) -> list[str]:
    """Return the indices in the directions in which they are executed."""
    scan = statement.scan
    return [
        f"-{name}" if scan is not None and scan == Scan(index.name, True) else name
        for name, index in zip(names, statement.indices, strict=False)
    ]


def _accesses(
    instance: Instance,
    statement: InstanceStatement,
    loads: Sequence[Load],
    names: list[str],
    tensors: dict[str, int],
) -> list[str]:
    renamed = {index.name: name for name, index in zip(names, statement.indices, strict=True)}
    bounds = _bounds(statement, names).removeprefix(" : ")
    accesses = []
    for load in loads:
        tensor = instance.tensor(load.tensor)
        subscripts, terms = [], [bounds] if bounds else []
        for place, subscript in enumerate(load.subscripts):
            if isinstance(subscript, Affine):
                subscripts.append(affine_text(subscript, renamed))
            else:
                subscripts.append(f"g{place}")
                origin = tensor.origin[place]
                terms.append(f"{origin} <= g{place} < {origin + tensor.shape[place]}")
        condition = f" : {' and '.join(terms)}" if terms else ""
        accesses.append(f"T{tensors[load.tensor]}[{', '.join(subscripts)}]{condition}")
    return accesses


def affine_text(affine: Affine, names: dict[str, str]) -> str:
    """Return an affine expression in isl's syntax, with renamed indices."""
    terms = [f"{step}*{names.get(name, name)}" for name, step in affine.coefficients]
    return " + ".join([*terms, str(affine.constant)])
