"""Possible sizes of a reshape: as many elements as the operand, and axes that stay together.

Reshapes that only merge and split axes of the operand in order are more likely than others:
products of the leading axes of the operand are also products of leading axes of the result.
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
"""Sizes of a shape: the number of a literal, a known row, or None for an open size."""

Weighed: TypeAlias = list[tuple[float, int, Choice]]
"""Choices with their cost, and an order among choices of equal cost."""

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
    weighted: Weighed,
    literals: Sequence[int],
    operand: Shape,
    layout: Layout,
    seen: Mapping[tuple[int, ...], Iterable[Shape]],
) -> Weighed:
    """Return the choices with as many elements as the operand, with costs adjusted for reshapes.

    Additional choices are those in which one literal is the remainder of the others, and shapes
    of earlier tensors (reassembled windows) with the same sizes at the capture.

    >>> rows = ((2, 2), (12, 16))  # at two points
    >>> weighted = [(0.0, 0, ((3, 4), (4, 4))), (0.0, 1, ((3, 3), (4, 4)))]
    >>> [choice for _, _, choice in weigh_reshapes(weighted, [3, 4], rows, [rows[0], 0, 1], {})]
    [((3, 4), (4, 4)), ((3, 4), (4, 4))]
    """
    if not operand:
        return weighted
    elements = product_of(operand)
    weighed = []
    weighted = list(weighted)
    if None not in layout:
        weighted = [*weighted, *_solved(weighted, literals, elements, layout)]
    hints = _shape_of(tuple((literal,) for literal in literals), elements[:1], _at_capture(layout))
    earlier = () if hints is None else tuple(seen.get(tuple(size for (size,) in hints), ()))
    for shape in earlier:
        choice = tuple(
            row for row, entry in zip(shape, layout, strict=True) if isinstance(entry, int)
        )
        weighted.append((0.0, len(weighted), choice))
    for cost, order, choice in weighted:
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
    """Return the complete shape, or None if the number of elements differs at some point."""
    unit = (1,) * len(elements)
    shape = [
        unit if entry is None else choice[entry] if isinstance(entry, int) else entry
        for entry in layout
    ]
    product = product_of([unit, *shape])
    if any(not size or whole % size for whole, size in zip(elements, product, strict=True)):
        return None
    rest = tuple(whole // size for whole, size in zip(elements, product, strict=True))
    if None not in layout:
        return tuple(shape) if rest == unit else None
    shape[list(layout).index(None)] = rest
    return tuple(shape)


def _is_likely_rest(shape: Shape, operand: Shape, layout: Layout) -> bool:
    """Return whether the open size is constant, or a product of adjacent axes of the operand."""
    row = shape[list(layout).index(None)]
    if row.count(row[0]) == len(row):
        return True
    ranges = itertools.combinations(range(len(operand) + 1), 2)
    return any(product_of(operand[first:last]) == row for first, last in ranges)


def _first_products(shape: Shape) -> list[Row]:
    """Return the products of the leading axes, except the product of all axes."""
    products = []
    product = (1,) * len(shape[0]) if shape else ()
    for row in shape[:-1]:
        product = product_of([product, row])
        products.append(product)
    return products


def _solved(weighted: Weighed, literals: Sequence[int], elements: Row, layout: Layout) -> Weighed:
    order = len(weighted)
    more: Weighed = []
    for cost, _, choice in weighted[:_MAX_SOLVED]:
        for at, literal in enumerate(literals):
            others = [
                choice[entry] if isinstance(entry, int) else entry
                for entry in layout
                if entry is not None and entry != at
            ]
            product = product_of([(1,) * len(elements), *others])
            if any(not n or whole % n for whole, n in zip(elements, product, strict=True)):
                continue
            row = tuple(whole // n for whole, n in zip(elements, product, strict=True))
            if row[0] == literal and row != choice[at]:
                order += 1
                more.append((cost + _SOLVED, order, (*choice[:at], row, *choice[at + 1 :])))
    return more
