"""Conditions around an access, and the facts they prove about its subscripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .affine import Affine
from .expressions import Access, Binary, Expression, Index, Select, Unary, children, walk
from .linear import Sizes, linear

Box = Mapping[str, tuple[int, int]]
Guards = tuple[Affine, ...]
"""Affine expressions that are non-negative wherever the guarded expression is evaluated."""
_ANY: Guards = (Affine(),)
"""The guards of a condition that is not affine: it implies nothing that a proof could use."""


def guarded_accesses(
    node: Expression, names: frozenset[str] = frozenset()
) -> Iterator[tuple[Access, frozenset[str]]]:
    """Yield each access below a node with the indices in the conditions around it."""
    match node:
        case Select():
            yield from guarded_accesses(node.condition, names)
            guarded = names | _indices(node.condition)
            yield from guarded_accesses(node.positive, guarded)
            yield from guarded_accesses(node.negative, guarded)
        case Binary(operator="&&" | "||"):
            yield from guarded_accesses(node.left, names)
            yield from guarded_accesses(node.right, names | _indices(node.left))
        case _:
            if isinstance(node, Access):
                yield node, names
            for child in children(node):
                yield from guarded_accesses(child, names)


def _indices(node: Expression) -> set[str]:
    return {part.name for part in walk(node) if isinstance(part, Index)}


def conditions(node: Expression, sizes: Sizes, outcome: bool) -> Guards:
    """Return affine expressions that are non-negative if a condition has this outcome."""
    match node:
        case Unary(operator="!"):
            return conditions(node.operand, sizes, not outcome)
        case Binary(operator="&&" | "||") if (node.operator == "&&") == outcome:
            return conditions(node.left, sizes, outcome) + conditions(node.right, sizes, outcome)
        case Binary() if node.left.type.is_integral:
            left, right = linear(node.left, sizes), linear(node.right, sizes)
            if left is None or right is None:
                return _ANY
            return _comparison(node.operator, left.affine - right.affine, outcome)
        case _:
            return _ANY


def _comparison(operator: str, gap: Affine, outcome: bool) -> Guards:
    """Return the guards of `gap operator 0`."""
    if not outcome:
        opposite = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
        operator = opposite.get(operator, "")
    match operator:
        case "<":
            return (-gap - 1,)
        case "<=":
            return (-gap,)
        case ">":
            return (gap - 1,)
        case ">=":
            return (gap,)
        case "==":
            return (gap, -gap)
        case _:
            return _ANY


def is_proven(constraint: Affine, box: Box, guards: Guards) -> bool:
    """Return whether guards prove an affine expression non-negative on a box.

    The test is sound but incomplete: False may only mean that no proof was found.

    >>> is_proven(Affine.of({"i": 1}, -1), {"i": (0, 9)}, (Affine.of({"i": 1}, -1),))
    True
    """
    if constraint.bounds(box)[0] >= 0:
        return True
    tightened = tighten(box, guards)
    if tightened is None:
        return True
    return any((constraint - guard).bounds(tightened)[0] >= 0 for guard in (Affine(), *guards))


def tighten(box: Box, guards: Guards) -> dict[str, tuple[int, int]] | None:
    """Return the smallest box that interval arithmetic derives from guards, or None if empty."""
    result = dict(box)
    for _ in range(4):
        before = dict(result)
        for guard in guards:
            if any(name not in result for name in guard.names):
                continue
            greatest = guard.bounds(result)[1]
            if greatest < 0:
                return None
            for name, factor in guard.coefficients:
                begin, end = result[name]
                own = max(factor * begin, factor * (end - 1))
                # factor * x >= own - greatest: the other terms contribute at most greatest - own
                least = own - greatest
                if factor > 0:
                    begin = max(begin, -(-least // factor))
                else:
                    end = min(end, least // factor + 1)
                if begin >= end:
                    return None
                result[name] = begin, end
        if result == before:
            break
    return result
