"""Possible meanings of the literals of an operator, most likely first.

A size is represented by a row: its value at each point of a probe. A literal may be a constant, or
follow a row with the same value at the sizes of the capture: an axis of the operand, a product or
quotient of axes, or a size that occurred elsewhere in the graph.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from .fitting import Fitter, Row
from .literals import Family
from .reshapes import Choice, Layout, Shape, product_of, weigh_reshapes

MAX_CHOICES = 24
_MAX_COMBINATIONS = 3000
_MAX_CANDIDATES = 6

_FAR, _DERIVED = 2.0, 4.0
"""Costs of a size that occurs elsewhere in the graph, and of a slightly larger or smaller size."""


_STAYING = 3.0
_UNLIKELY = 3.5
_LATER = 0.01
_RESHAPED = 0.6
_SMALL = 2


def _follows(row: Row, column: Row) -> bool:
    """Return whether a row changes at a point at which a symbol changes."""
    return any(
        size != row[0] and other != column[0] for size, other in zip(row, column, strict=True)
    )


class Sizes:
    """Varying sizes that occurred in a graph so far, by their value at the capture."""

    def __init__(self, fitter: Fitter, symbols: Iterable[Row]) -> None:
        self.fitter = fitter
        self.symbols = tuple(symbols)
        self._by_hint: dict[int, dict[Row, None]] = {}
        self.shapes: dict[tuple[int, ...], dict[Shape, None]] = {}
        for row in self.symbols:
            self.add(row)

    def add(self, row: Row) -> None:
        """Record a size."""
        if row.count(row[0]) < len(row):
            self._by_hint.setdefault(row[0], {})[row] = None

    def add_shape(self, shape: Shape) -> None:
        """Record the sizes of a tensor, and its shape if it varies."""
        for row in shape:
            self.add(row)
        if any(row.count(row[0]) < len(row) for row in shape):
            self.shapes.setdefault(tuple(row[0] for row in shape), {})[shape] = None

    def cost_of(self, row: Row) -> float:
        """Return the cost of the hypothesis that a literal equal to a size means that size.

        If a symbol was 1 or 2 at the capture, any number is a product of it and another number.
        """
        if row in self.symbols:
            return _FAR - 0.5
        varies = [column for column in self.symbols if _follows(row, column)]
        return _FAR if any(column[0] > _SMALL for column in varies) else _UNLIKELY

    def having(self, hint: int) -> list[Row]:
        """Return the sizes with a value at the capture, symbols first, then in order of
        occurrence.
        """
        rows = list(self._by_hint.get(hint, ()))
        return sorted(rows, key=lambda row: row not in self.symbols)

    def derived(self, hint: int, operand: Shape) -> list[Row]:
        """Return sizes slightly larger or smaller than known sizes, and halves and doubles of
        them.
        """
        rows: dict[Row, None] = {}
        for row in (*operand, *self.symbols):
            if row.count(row[0]) == len(row):
                continue
            base = row[0]
            for change in (1, -1, 2, -2):
                if base + change == hint:
                    rows[tuple(size + change for size in row)] = None
            for change in (0, 1, -1):
                if 2 * base + change == hint:
                    rows[tuple(2 * size + change for size in row)] = None
                if base // 2 + change == hint and change >= 0:
                    rows[tuple(size // 2 + change for size in row)] = None
        return [row for row in rows if min(row) > 0]


def choices_of(
    family: Family,
    literals: Sequence[int],
    operand: Shape | None,
    sizes: Sizes,
    layout: Layout = (),
) -> list[Choice]:
    """Return the possible meanings of the literals, most likely first, without testing them.

    `operand` is the shape of the operator's tensor, or of the axis that the literals refer to. For
    a reshape, `layout` describes the positions of literals among known and open sizes.
    """
    fixed = tuple(sizes.fitter.constant(number) for number in literals)
    axes = _axes_from_the_end(layout, len(operand or ())) if family == "reshape" else {}
    candidates = [
        _candidates(family, at, literals, operand or (), sizes, axes.get(at))
        for at in range(len(literals))
    ]
    _limit(candidates)
    weighted: list[tuple[float, int, Choice]] = []
    for order, combined in enumerate(itertools.product(*candidates)):
        cost = sum(candidate_cost for candidate_cost, _ in combined)
        weighted.append((cost, order, tuple(row for _, row in combined)))
    if family == "reshape" and operand is not None:
        layout = layout or range(len(literals))
        weighted = weigh_reshapes(weighted, literals, operand, layout, sizes.shapes)
    elif family == "parts" and operand is not None and len(literals) > 1:
        weighted += _summed(weighted, operand, len(weighted))
        weighted = [item for item in weighted if _adds_up(item[2], operand)]
    weighted.sort()
    distinct = dict.fromkeys(
        choice
        for _, _, choice in weighted
        if all(sizes.fitter.fit(row) is not None for row in choice)
    )
    listed = list(distinct)[:MAX_CHOICES]
    return listed if fixed in listed else [*listed, fixed]


def _axes_from_the_end(layout: Layout, num_axes: int) -> dict[int, int]:
    """Map literals after an open size to the operand axes at their positions."""
    axes: dict[int, int] = {}
    is_behind = False
    for place, entry in enumerate(layout):
        axis = num_axes - len(layout) + place
        if type(entry) is int and is_behind and axis >= 0:
            axes[entry] = axis
        is_behind = is_behind or entry is None
    return axes


def _limit(candidates: list[list[tuple[float, Row]]]) -> None:
    """Drop candidates until there are few enough combinations."""
    most = _MAX_CANDIDATES
    while math.prod(map(len, candidates)) > _MAX_COMBINATIONS and most > 1:
        for options in candidates:
            del options[most:]
        most -= 1


def _candidates(
    family: Family,
    at: int,
    literals: Sequence[int],
    operand: Shape,
    sizes: Sizes,
    axis: int | None = None,
) -> list[tuple[float, Row]]:
    number = literals[at]
    constant = sizes.fitter.constant(number)
    costs: dict[Row, float] = {}

    def note(row: Row, cost: float) -> None:
        if row[0] == number and row != constant and min(row) >= 0:
            costs[row] = min(cost, costs.get(row, cost))

    for place, row in enumerate(operand):
        note(row, 0.0 if place == (at if axis is None else axis) else 0.5)
    if family == "reshape":
        for first, last in itertools.combinations(range(len(operand) + 1), 2):
            note(product_of(operand[first:last]), 1.0)
        for other, parts in enumerate(literals):  # an axis split into windows
            for row in operand if other != at and parts > 1 else ():
                if not any(size % parts for size in row):
                    windows = tuple(size // parts for size in row)
                    note(windows, 0.4 if other == at + 1 else 0.9)
    for row in sizes.having(number) if family != "mean" else ():
        note(row, sizes.cost_of(row))
    if family not in ("reshape", "expand", "mean") and number > 2:
        for row in sizes.derived(number, operand):
            note(row, _DERIVED)
    stays = _cost_of_staying(family, number, operand, costs)
    if axis is not None and operand[axis] == constant:
        stays = 0.0  # it equals the size of the axis at its position
    later = _LATER * at  # prefer the first of two equal sizes
    listed = [(cost + later, row) for row, cost in costs.items()]
    return sorted([*listed, (stays, constant)])[:_MAX_CANDIDATES]


def _cost_of_staying(family: Family, number: int, operand: Shape, costs: dict[Row, float]) -> float:
    if not costs or family == "constant":
        return -1.0
    if family == "reshape":
        return _RESHAPED
    if family == "mean":
        return 1.0
    if family == "expand":
        # A size that equals another axis of the operand rarely means that axis.
        return -1.0 if number == 1 and min(costs.values()) > 1 else _own_or_staying(costs, operand)
    is_own = min(costs.values()) < 1
    if number == 1 and not is_own:
        return -1.0
    if family == "repeat" and any(row.count(row[0]) < len(row) for row in operand):
        return -1.0 if not is_own else 0.3
    if min(costs.values()) >= _DERIVED:
        return 1.0
    return _STAYING


def _own_or_staying(costs: dict[Row, float], operand: Shape) -> float:
    return 1.0 if any(row in operand for row in costs) else _STAYING


def _adds_up(choice: Choice, axis: Shape) -> bool:
    return len(axis) != 1 or tuple(map(sum, zip(*choice, strict=True))) == axis[0]


def _summed(
    weighted: list[tuple[float, int, Choice]], axis: Shape, order: int
) -> list[tuple[float, int, Choice]]:
    """Return choices in which one part is the remainder of an axis."""
    more = []
    for cost, _, choice in weighted[:50]:
        for at in range(len(choice)) if len(axis) == 1 else ():
            others = [sum(sizes) - sizes[at] for sizes in zip(*choice, strict=True)]
            row = tuple(whole - other for whole, other in zip(axis[0], others, strict=True))
            if row[0] == choice[at][0] and min(row) > 0 and row != choice[at]:
                order += 1
                more.append((cost + 1.2, order, (*choice[:at], row, *choice[at + 1 :])))
    return more
