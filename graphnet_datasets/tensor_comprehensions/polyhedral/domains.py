"""Statements as integer sets: where they are executed, what they read and what they write.

Statement k is `S<k>[indices]`; a reduction that begins with its identity has a second statement
`I<k>[output indices]`. Tensors are `T<n>`. All names are ours, so nothing of a definition is parsed
by isl.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..language.affine import Affine
from ..language.instance import Instance, InstanceStatement
from .isl import isl


@dataclasses.dataclass(frozen=True)
class Domains:
    """The sets and maps of an instance.

    Attributes:
        instance: what they are of.
        domain: all points of all statements (union set).
        reads: points to the elements that their expressions read (union map).
        accumulates: points of reductions to the element that they go on from.
        writes: points to the element that they write.
        initial: the order of the text: points to `[statement, phase, indices…]` (union map).
        rank: the length of those tuples.
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
    """Return isl's names of a statement's indices: `i0, i1, …` in order."""
    count = len(statement.subscripts) if is_initialisation else len(statement.indices)
    return [f"i{place}" for place in range(count)]


def has_initialisation(statement: InstanceStatement) -> bool:
    """Tell whether a statement fills its output before it reduces into it."""
    return statement.initialises and bool(statement.reductions)


def domains(instance: Instance, numbers: Sequence[int] | None = None) -> Domains:
    """Return the sets and maps of an instance; a gather may read any element.

    Args:
        numbers: the statements that are meant, None for all.
    """
    tensors = {each.name: place for place, each in enumerate(instance.tensors)}
    rank = 2 + max((len(each.indices) for each in instance.statements), default=0)
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
            target = f"T{tensors[statement.output]}[{', '.join(place)}]"
            writes.append(f"{space} -> {target}{bounds}")
            order = [str(number), "0" if initial else "1", *names]
            order += ["0"] * (rank - len(order))
            orders.append(f"{space} -> [{', '.join(order)}]{bounds}")
            if initial:
                continue
            if statement.operator != "=" and (statement.reductions or not statement.initialises):
                accumulates.append(f"{space} -> {target}{bounds}")
            reads += [
                f"{space} -> {each}" for each in _accesses(instance, statement, names, tensors)
            ]
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
        f"{each.begin} <= {name} < {each.end}"
        for name, each in zip(names, statement.indices, strict=False)
    ]
    return f" : {' and '.join(terms)}" if terms else ""


def _accesses(
    instance: Instance, statement: InstanceStatement, names: list[str], tensors: dict[str, int]
) -> list[str]:
    renamed = {each.name: name for name, each in zip(names, statement.indices, strict=True)}
    bounds = _bounds(statement, names).removeprefix(" : ")
    found = []
    for load in statement.loads:
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
        found.append(f"T{tensors[load.tensor]}[{', '.join(subscripts)}]{condition}")
    return found


def affine_text(affine: Affine, names: dict[str, str]) -> str:
    """Return an affine expression for isl, with other names."""
    terms = [f"{step}*{names.get(name, name)}" for name, step in affine.coefficients]
    return " + ".join([*terms, str(affine.constant)])
