"""Merging of neighbouring dimensions that every access traverses as one.

A matrix product over `(m, n0, n1)` rows gets a single dimension of rows; a mean over `(h, w)` gets
a single contiguous run. Dimensions of extent 1 are removed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..language.affine import Affine
from ..language.expressions import Expression, Index, walk
from .elements import Dim, Element, Nest, elements_of, leaf, rewrite


@dataclasses.dataclass(frozen=True, slots=True)
class Coalesced:
    """A nest with fewer dimensions, and their relation to the original dimensions.

    `parts[new]` lists the original dimensions merged into `new`, outermost first.
    """

    nest: Nest
    parts: dict[str, tuple[Dim, ...]]


def coalesce(nest: Nest) -> Coalesced:
    """Merge as many dimensions as the accesses allow, keeping their order."""
    fixed = _used_as_values(nest) | set(nest.serial)
    offsets = [element.offset for element in nest.elements()]
    dims, dim_parts = _merge(nest.dims, offsets, fixed)
    reductions, reduction_parts = _merge(nest.reductions, offsets, fixed)
    parts = {**dim_parts, **reduction_parts}
    # A merged dimension keeps the name and the coefficient of its innermost part.
    dropped = {dim.name for group in parts.values() for dim in group} - set(parts)
    dropped |= {dim.name for dim in (*nest.dims, *nest.reductions)} - {
        dim.name for group in parts.values() for dim in group
    }

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element):
            coefficients = {
                name: coefficient
                for name, coefficient in node.offset.coefficients
                if name not in dropped
            }
            return dataclasses.replace(node, offset=Affine.of(coefficients, node.offset.constant))
        if isinstance(node, Index) and node.name in dropped:
            from ..language.expressions import Constant

            return Constant(0, node.type)  # its extent is 1
        return None

    return Coalesced(map_nest(nest, change, dims, reductions), parts)


def map_nest(nest: Nest, change, dims: tuple[Dim, ...], reductions: tuple[Dim, ...]) -> Nest:
    """Return the nest with every expression rewritten and with new dimensions."""

    def target(element: Element) -> Element:
        changed = rewrite(leaf(element), change)
        return changed if isinstance(changed, Element) else element

    updates = tuple(
        dataclasses.replace(
            update,
            target=target(update.target),
            value=rewrite(update.value, change),
            start=update.start if isinstance(update.start, str) else rewrite(update.start, change),
        )
        for update in nest.updates
    )
    epilogues = tuple(
        dataclasses.replace(
            assign, target=target(assign.target), value=rewrite(assign.value, change)
        )
        for assign in nest.epilogues
    )
    return dataclasses.replace(
        nest,
        dims=dims,
        reductions=reductions,
        updates=updates,
        epilogues=epilogues,
        serial=tuple(dim.name for dim in dims if dim.name in nest.serial),
    )


def _used_as_values(nest: Nest) -> set[str]:
    """Return the dimensions used as values, which cannot be merged."""
    used: set[str] = set()
    for value in nest.expressions():
        for node in walk(value):
            if isinstance(node, Index):
                used.add(node.name)
        for element in elements_of(value):
            for _, subscript, _ in element.gathers:
                used |= {index.name for index in walk(subscript) if isinstance(index, Index)}
    return used


def _merge(
    dims: tuple[Dim, ...], offsets: Iterable[Affine], fixed: set[str]
) -> tuple[tuple[Dim, ...], dict[str, tuple[Dim, ...]]]:
    steps = [dict(offset.coefficients) for offset in offsets]
    merged: list[tuple[Dim, tuple[Dim, ...]]] = []
    for dim in dims:
        if dim.extent == 1:
            continue
        if merged:
            outer, parts = merged[-1]
            fits = not {outer.name, dim.name} & fixed and all(
                step.get(outer.name, 0) == step.get(dim.name, 0) * dim.extent for step in steps
            )
            if fits:
                merged[-1] = (Dim(dim.name, outer.extent * dim.extent), (*parts, dim))
                continue
        merged.append((dim, (dim,)))
    return tuple(dim for dim, _ in merged), {dim.name: parts for dim, parts in merged}
