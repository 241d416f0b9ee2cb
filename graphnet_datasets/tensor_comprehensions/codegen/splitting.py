"""Splitting of nests where a condition on their indices changes, to remove the condition.

A guard such as `t >= 32 ? x(t - 32) : 0` is false for the first 32 values of `t` and true for the
rest, so splitting leaves two nests without a condition. In a padded convolution, only the border
keeps the condition.
"""

from __future__ import annotations

import dataclasses
import itertools

from ..language.affine import Affine
from ..language.expressions import (
    Binary,
    Cast,
    Constant,
    Expression,
    Index,
    Select,
    Unary,
    rebuild,
    walk,
)
from .coalescing import map_nest
from .elements import Dim, Element, Nest, elements_of

MAX_PIECES = 12
Box = dict[str, tuple[int, int]]


def split(nest: Nest, max_pieces: int = MAX_PIECES) -> list[Nest]:
    """Split a nest into nests over disjoint parts of its box, at most `max_pieces`."""
    box = {name: (0, extent) for name, extent in nest.extents.items()}
    cuts: dict[str, set[int]] = {dim.name: set() for dim in nest.dims}
    for value in nest.expressions():
        for node in walk(value):
            if isinstance(node, Select):
                for condition in _conditions(node.condition):
                    for name in set(condition.names) & set(cuts):
                        cuts[name] |= _cuts(condition, name, box)
    if any(_reads_own_output(nest)):
        return [_simplified(nest, box)]
    edges = {
        dim.name: [0, *sorted(cuts[dim.name] - {0, dim.extent}), dim.extent] for dim in nest.dims
    }
    count = 1
    for dim_edges in edges.values():
        count *= len(dim_edges) - 1
    if count == 1 or count > max_pieces:
        return [_simplified(nest, box)]
    names = list(edges)
    pieces = []
    for ranges in itertools.product(*(itertools.pairwise(edges[name]) for name in names)):
        pieces.append(_part(nest, dict(zip(names, ranges, strict=True))))
    return pieces


def _reads_own_output(nest: Nest) -> list[bool]:
    """Return, for each read, whether it reads a tensor that the nest writes at another point.

    The reads of a scan do not count, because the parts of its box are executed in its order.
    """
    written = {
        statement.target.tensor: statement.target.offset
        for statement in (*nest.updates, *nest.epilogues)
    }
    return [
        element.tensor in written
        and (
            bool(element.gathers) or (element.offset != written[element.tensor] and not nest.serial)
        )
        for value in nest.expressions()
        for element in elements_of(value)
    ]


def _part(nest: Nest, ranges: Box) -> Nest:
    """Return the nest over a part of its box, with dimensions starting at 0."""
    moved = {name: begin for name, (begin, _) in ranges.items() if begin}

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Element):
            offset = node.offset
            for name, begin in moved.items():
                offset = offset + offset.coefficient(name) * begin
            return dataclasses.replace(node, offset=offset)
        if isinstance(node, Index) and node.name in moved:
            return Binary("+", node, Constant(moved[node.name], node.type), node.type)
        return None

    dims = tuple(Dim(dim.name, _length(ranges[dim.name])) for dim in nest.dims)
    part = map_nest(nest, change, dims, nest.reductions)
    begins = tuple((dim.name, ranges[dim.name][0]) for dim in nest.dims)
    part = dataclasses.replace(part, begins=begins)
    return _simplified(part, {name: (0, extent) for name, extent in part.extents.items()})


def _length(bounds: tuple[int, int]) -> int:
    return bounds[1] - bounds[0]


def _simplified(nest: Nest, box: Box) -> Nest:
    """Remove the conditions whose outcome is constant in the box."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Select):
            decided = _decide(node.condition, box)
            if decided is not None:
                return node.positive if decided else node.negative
        if (
            isinstance(node, Binary)
            and node.operator == "+"
            and node.type.is_float
            and isinstance(node.right, Constant)
            and node.right.value == 0
        ):
            return node.left  # exact except for -0, which does not change a sum
        if isinstance(node, Cast) and isinstance(node.operand, Constant):
            value = node.operand.value
            if node.type.is_float and node.type.bits >= 32:
                return Constant(float(value), node.type)
        return None

    simplified = map_nest(nest, change, nest.dims, nest.reductions)
    return _unguarded(simplified)


def _unguarded(nest: Nest) -> Nest:
    """Mark elements that are no longer inside a condition as unguarded."""

    def outside(node: Expression) -> Expression:
        if isinstance(node, Select):
            return node
        if isinstance(node, Element):
            return dataclasses.replace(node, is_guarded=False) if node.is_guarded else node
        return rebuild(node, outside)

    updates = tuple(
        dataclasses.replace(
            update,
            value=outside(update.value),
            start=update.start if isinstance(update.start, str) else outside(update.start),
        )
        for update in nest.updates
    )
    epilogues = tuple(
        dataclasses.replace(assign, value=outside(assign.value)) for assign in nest.epilogues
    )
    return dataclasses.replace(nest, updates=updates, epilogues=epilogues)


def _conditions(node: Expression) -> list[Affine]:
    """Return the affine expressions whose sign (>= 0 or not) decides a condition."""
    if isinstance(node, Binary) and node.operator in ("&&", "||"):
        return [*_conditions(node.left), *_conditions(node.right)]
    if isinstance(node, Unary) and node.operator == "!":
        return _conditions(node.operand)
    differences = _as_difference(node)
    return [] if differences is None else differences


def _as_difference(node: Expression) -> list[Affine] | None:
    if not isinstance(node, Binary):
        return None
    left, right = affine_of(node.left), affine_of(node.right)
    if left is None or right is None:
        return None
    match node.operator:
        case ">=":
            return [left - right]
        case ">":
            return [left - right - 1]
        case "<=":
            return [right - left]
        case "<":
            return [right - left - 1]
        case "==" | "!=":
            return [left - right, right - left]
        case _:
            return None


def affine_of(node: Expression) -> Affine | None:
    """Return integer arithmetic of dimensions as an affine expression, or None."""
    match node:
        case Constant() if node.type.is_integral:
            return Affine((), int(node.value))
        case Index():
            return Affine.index(node.name)
        case Cast() if node.type.is_integral and node.type.bits >= 32:
            return affine_of(node.operand)
        case Unary() if node.operator == "-":
            inner = affine_of(node.operand)
            return None if inner is None else -inner
        case Binary() if node.type.is_integral and node.operator in ("+", "-", "*"):
            left, right = affine_of(node.left), affine_of(node.right)
            if left is None or right is None:
                return None
            if node.operator == "+":
                return left + right
            if node.operator == "-":
                return left - right
            if left.is_constant:
                return right * left.constant
            return left * right.constant if right.is_constant else None
        case _:
            return None


def _cuts(condition: Affine, name: str, box: Box) -> set[int]:
    """Return the positions along a dimension where a condition changes or becomes undecided."""
    step = condition.coefficient(name)
    others = Affine.of(
        {other: coefficient for other, coefficient in condition.coefficients if other != name}
    )
    least, greatest = (others + condition.constant).bounds(box)
    begin, end = box[name]
    positions = set()
    for bound in (least, greatest):
        # step * x + bound >= 0 changes between two values of x
        edge = -(bound // step) if step > 0 else bound // -step + 1
        if begin < edge < end:
            positions.add(edge)
    return positions


def _decide(node: Expression, box: Box) -> bool | None:
    """Return the value of a condition in the whole box, or None if it varies."""
    if isinstance(node, Constant):
        return bool(node.value)
    if isinstance(node, Unary) and node.operator == "!":
        inner = _decide(node.operand, box)
        return None if inner is None else not inner
    if isinstance(node, Binary) and node.operator in ("&&", "||"):
        left, right = _decide(node.left, box), _decide(node.right, box)
        if node.operator == "&&":
            if left is False or right is False:
                return False
            return True if left and right else None
        if left or right:
            return True
        return False if left is False and right is False else None
    differences = _as_difference(node)
    if differences is None or not isinstance(node, Binary):
        return None
    signs = []
    for difference in differences:
        least, greatest = difference.bounds(box)
        signs.append(True if least >= 0 else (False if greatest < 0 else None))
    if node.operator == "!=":
        if False in signs:
            return True
        return False if all(signs) else None
    if node.operator == "==":
        if False in signs:
            return False
        return True if all(signs) else None
    return signs[0]
