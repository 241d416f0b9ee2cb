"""Neighbouring dimensions that every access walks as one become one.

A matrix product over `(m, n0, n1)` rows has one long dimension of rows; a mean over `(h, w)` is one
contiguous run. Dimensions of extent 1 go altogether.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..language.affine import Affine
from ..language.expressions import Expression, Index, walk
from .elements import Dim, Element, Nest, elements_of, rewrite


@dataclasses.dataclass(frozen=True, slots=True)
class Coalesced:
    """A nest with fewer dimensions, and what each dimension of the old one is in the new.

    `parts[new]` lists the old dimensions that `new` runs through, outermost first.
    """

    nest: Nest
    parts: dict[str, tuple[Dim, ...]]


def coalesce(nest: Nest) -> Coalesced:
    """Return the nest with as few dimensions as its accesses allow, in their old order."""
    fixed = _used_as_values(nest)
    offsets = [each.offset for each in nest.elements()]
    dims, dim_parts = _merge(nest.dims, offsets, fixed)
    reductions, reduction_parts = _merge(nest.reductions, offsets, fixed)
    parts = {**dim_parts, **reduction_parts}
    # A merged dimension keeps the name and the coefficient of its innermost part.
    dropped = {each.name for group in parts.values() for each in group} - set(parts)
    dropped |= {each.name for each in (*nest.dims, *nest.reductions)} - {
        each.name for group in parts.values() for each in group
    }

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element):
            kept = {name: each for name, each in node.offset.coefficients if name not in dropped}
            return dataclasses.replace(node, offset=Affine.of(kept, node.offset.constant))
        if isinstance(node, Index) and node.name in dropped:
            from ..language.expressions import Constant

            return Constant(0, node.type)  # its extent is 1
        return None

    return Coalesced(map_nest(nest, change, dims, reductions), parts)


def map_nest(nest: Nest, change, dims: tuple[Dim, ...], reductions: tuple[Dim, ...]) -> Nest:
    """Return the nest with every expression rewritten, over other dimensions."""

    def target(each: Element) -> Element:
        changed = change(each)
        return changed if isinstance(changed, Element) else each

    updates = tuple(
        dataclasses.replace(
            each,
            target=target(each.target),
            value=rewrite(each.value, change),
            start=each.start if isinstance(each.start, str) else rewrite(each.start, change),
        )
        for each in nest.updates
    )
    epilogues = tuple(
        dataclasses.replace(each, target=target(each.target), value=rewrite(each.value, change))
        for each in nest.epilogues
    )
    return dataclasses.replace(
        nest, dims=dims, reductions=reductions, updates=updates, epilogues=epilogues
    )


def _used_as_values(nest: Nest) -> set[str]:
    """Return the dimensions whose value is computed with, so that they must stay as they are."""
    used: set[str] = set()
    for value in nest.expressions():
        for node in walk(value):
            if isinstance(node, Index):
                used.add(node.name)
        for element in elements_of(value):
            for _, subscript, _ in element.gathers:
                used |= {each.name for each in walk(subscript) if isinstance(each, Index)}
    return used


def _merge(
    dims: tuple[Dim, ...], offsets: Iterable[Affine], fixed: set[str]
) -> tuple[tuple[Dim, ...], dict[str, tuple[Dim, ...]]]:
    steps = [dict(each.coefficients) for each in offsets]
    merged: list[tuple[Dim, tuple[Dim, ...]]] = []
    for dim in dims:
        if dim.extent == 1:
            continue
        if merged:
            outer, parts = merged[-1]
            fits = not {outer.name, dim.name} & fixed and all(
                each.get(outer.name, 0) == each.get(dim.name, 0) * dim.extent for each in steps
            )
            if fits:
                merged[-1] = (Dim(dim.name, outer.extent * dim.extent), (*parts, dim))
                continue
        merged.append((dim, (dim,)))
    return tuple(each for each, _ in merged), {each.name: parts for each, parts in merged}
