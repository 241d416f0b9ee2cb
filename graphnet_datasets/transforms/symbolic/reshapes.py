"""Which sizes a reshape may have been given: as many elements, and axes that stay together.

Of several ways to write the numbers of one shape those are likelier that only merge and split axes
of the operand in their order: products of the first axes of one are such products of the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from .fitting import Row

Shape: TypeAlias = tuple[Row, ...]
Choice: TypeAlias = tuple[Row, ...]
"""A row for each literal of an operator."""

Layout: TypeAlias = Sequence[int | Row | None]
"""The sizes of a shape: the number of a literal, a row that is known, or None for one left open."""

Weighed: TypeAlias = list[tuple[float, int, Choice]]
"""Choices with their cost, and an order among those of one cost."""

_SOLVED = 1.2
_STRANGE_REST = 2.0
_TOGETHER = 0.6
_SEEN = 1.5
_MAX_SOLVED = 200


def product_of(rows: Sequence[Row]) -> Row:
    """Return the products of rows, point by point; there is at least one row.

    >>> product_of([(2, 3), (4, 5)])
    (8, 15)
    """
    return tuple(map(math.prod, zip(*rows, strict=True)))


def weigh_reshapes(
    found: Weighed,
    literals: Sequence[int],
    operand: Shape,
    layout: Layout,
    seen: Mapping[tuple[int, ...], Iterable[Shape]],
) -> Weighed:
    """Return the choices with as many elements as the operand, with what a reshape adds to costs.

    Choices in which one literal is what the others leave come to those that were found, and shapes
    that a tensor had before (windows that are put together again), by their sizes at the capture.

    >>> rows = ((2, 2), (12, 16))  # at two points
    >>> found = [(0.0, 0, ((3, 4), (4, 4))), (0.0, 1, ((3, 3), (4, 4)))]
    >>> [choice for _, _, choice in weigh_reshapes(found, [3, 4], rows, [rows[0], 0, 1], {})]
    [((3, 4), (4, 4)), ((3, 4), (4, 4))]
    """
    if not operand:
        return found
    elements = product_of(operand)
    weighed = []
    found = list(found)
    if None not in layout:
        found = [*found, *_solved(found, literals, elements, layout)]
    hints = _shape_of(tuple((each,) for each in literals), elements[:1], _at_capture(layout))
    earlier = () if hints is None else tuple(seen.get(tuple(size for (size,) in hints), ()))
    for shape in earlier:
        choice = tuple(
            row for row, entry in zip(shape, layout, strict=True) if isinstance(entry, int)
        )
        found.append((0.0, len(found), choice))
    for cost, order, choice in found:
        shape = _shape_of(choice, elements, layout)
        if shape is None:
            continue
        if None in layout and not _is_likely_rest(shape, operand, layout):
            cost += _STRANGE_REST
        if shape in earlier:
            cost -= _SEEN
        common = set(_first_products(operand)) & set(_first_products(shape))
        weighed.append((round(cost - _TOGETHER * len(common), 6), order, choice))
    return weighed


def _at_capture(layout: Layout) -> Layout:
    return [entry if entry is None or isinstance(entry, int) else entry[:1] for entry in layout]


def _shape_of(choice: Choice, elements: Row, layout: Layout) -> Shape | None:
    """Return the whole shape, None where it has another number of elements at some point."""
    one = (1,) * len(elements)
    shape = [
        one if entry is None else choice[entry] if isinstance(entry, int) else entry
        for entry in layout
    ]
    given = product_of([one, *shape])
    if any(not size or whole % size for whole, size in zip(elements, given, strict=True)):
        return None
    rest = tuple(whole // size for whole, size in zip(elements, given, strict=True))
    if None not in layout:
        return tuple(shape) if rest == one else None
    shape[list(layout).index(None)] = rest
    return tuple(shape)


def _is_likely_rest(shape: Shape, operand: Shape, layout: Layout) -> bool:
    """Tell whether what is left open stays as it is, or is axes of the operand together."""
    row = shape[list(layout).index(None)]
    if row.count(row[0]) == len(row):
        return True
    ranges = itertools.combinations(range(len(operand) + 1), 2)
    return any(product_of(operand[first:last]) == row for first, last in ranges)


def _first_products(shape: Shape) -> list[Row]:
    """Return the products of the first axes, but of all."""
    products = []
    product = (1,) * len(shape[0]) if shape else ()
    for row in shape[:-1]:
        product = product_of([product, row])
        products.append(product)
    return products


def _solved(found: Weighed, literals: Sequence[int], elements: Row, layout: Layout) -> Weighed:
    order = len(found)
    more: Weighed = []
    for cost, _, choice in found[:_MAX_SOLVED]:
        for at, literal in enumerate(literals):
            others = [
                choice[entry] if isinstance(entry, int) else entry
                for entry in layout
                if entry is not None and entry != at
            ]
            given = product_of([(1,) * len(elements), *others])
            if any(not n or whole % n for whole, n in zip(elements, given, strict=True)):
                continue
            row = tuple(whole // n for whole, n in zip(elements, given, strict=True))
            if row[0] == literal and row != choice[at]:
                order += 1
                more.append((cost + _SOLVED, order, (*choice[:at], row, *choice[at + 1 :])))
    return more
