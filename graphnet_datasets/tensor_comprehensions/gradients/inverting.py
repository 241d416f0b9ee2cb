"""Inversion of the subscripts of an access: solutions for the indices of its statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ...errors import TensorComprehensionError
from ..language.affine import Affine
from ..language.checked import Statement
from ..language.expressions import (
    Access,
    Binary,
    Cast,
    Constant,
    Expression,
    Index,
    Size,
    Unary,
    walk,
)
from ..language.printing import Printer
from ..language.types import INT32


class NotInvertibleError(TensorComprehensionError):
    """The indices of a statement do not follow from the subscripts of an access."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inverse:
    """Indices of a statement as functions of the coordinates of an access.

    Attributes:
        subscripts: names of the coordinates.
        replacements: solutions for the solved indices.
        guards: conditions under which they are in range.
        ranges: begin and end, as source, of the remaining indices.
    """

    subscripts: tuple[str, ...]
    replacements: dict[str, Expression]
    guards: tuple[str, ...]
    ranges: dict[str, tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Extents:
    """Sizes of tensors as source.

    Attributes:
        declared: declared sizes of inputs, which show which sizes are equal.
        outputs: for an output, the tensor that has its sizes: its upstream gradient; likewise for
            temporaries that a scatter fills.
    """

    declared: Mapping[str, tuple[str | int, ...]]
    outputs: Mapping[str, str]

    def of(self, tensor: str, place: int) -> str:
        """Return the size of a dimension."""
        if tensor in self.declared:
            return str(self.declared[tensor][place])
        return f"{self.outputs.get(tensor, tensor)}.{place}"


def invert(access: Access, statement: Statement, extents: Extents) -> Inverse:
    """Invert the subscripts of an access.

    Raises:
        NotInvertibleError: a subscript is neither affine nor such an expression divided by a
            number.
    """
    indices = (*statement.subscripts, *statement.reductions)
    names = _coordinates(len(access.subscripts), statement)
    coordinates: list[Expression] = [Index(name) for name in names]
    replacements: dict[str, Expression] = {}
    guards: list[str] = []
    within: dict[str, tuple[str, str]] = {}
    parts: list[Affine] = []
    for place, subscript in enumerate(access.subscripts):
        part = _affine(subscript)
        if part is None:
            inner = _divided(subscript)
            if inner is None:
                raise NotInvertibleError("A subscript is not affine in indices and sizes.")
            # `e / c == at` for `e` from `c * at` on; `e % c == at` for every c-th `e`.
            part, operator, divisor = inner
            name = f"{names[place]}_part"
            if operator == "/":
                coordinates[place] = _sum(_product(coordinates[place], divisor), Index(name))
                within[name] = "0", str(divisor)
            else:
                ((index, _),) = part.coefficients
                _, end = range_of(index, statement, extents)
                guards.append(f"{names[place]} < {divisor}")
                coordinates[place] = _sum(coordinates[place], _product(Index(name), divisor))
                within[name] = "0", f"({end}) / {divisor} + 1"
        parts.append(part)
    printer = Printer({})
    # Subscripts with few indices come first, because they leave less to solve for the others.
    order = sorted(range(len(parts)), key=lambda place: len(_names(parts[place], indices)))
    for place in order:
        part = _replaced(parts[place], replacements)
        unsolved = [name for name in _names(parts[place], indices) if name not in replacements]
        solvable = [name for name in unsolved if abs(parts[place].coefficient(name)) == 1]
        others = {
            name for other in order if other != place for name in _names(parts[other], indices)
        }
        solvable.sort(key=lambda name: (name in others, name not in statement.subscripts))
        coordinate = coordinates[place]
        if not unsolved:
            guards.append(f"{printer.expression(coordinate)} == {printer.expression(part)}")
            continue
        solved_index = (solvable or unsolved)[0]
        if parts[place] == Affine.index(solved_index):
            replacements[solved_index] = coordinate
        else:
            factor = parts[place].coefficient(solved_index)
            rest = _replaced(parts[place] - Affine.index(solved_index) * factor, replacements)
            solution: Expression = Binary("-", coordinate, rest, INT32)
            solution = solution if factor > 0 else Unary("-", solution, INT32)
            if abs(factor) > 1:
                divisor = Constant(abs(factor), INT32)
                remainder = printer.expression(Binary("%", solution, divisor, INT32))
                guards.append(f"{remainder} == 0")
                solution = Binary("/", solution, divisor, INT32)
            replacements[solved_index] = solution
        begin, end = range_of(solved_index, statement, extents)
        text = printer.expression(replacements[solved_index])
        is_coordinate = replacements[solved_index] == coordinate
        if not (is_coordinate and begin == "0"):
            guards.append(f"{text} >= {begin}")
        if not (is_coordinate and end == extents.of(access.tensor, place)):
            guards.append(f"{text} < {end}")
    ranges = {
        name: range_of(name, statement, extents) for name in indices if name not in replacements
    }
    return Inverse(tuple(names), replacements, tuple(guards), ranges | within)


def _divided(subscript: Expression) -> tuple[Affine, str, int] | None:
    """Return `(e, operator, c)` of `e / c`, or of `i % c` with an index `i`; None for others."""
    match subscript:
        case Binary(operator="/" | "%" as operator, left=left, right=Constant(value=divisor)):
            inner = _affine(left)
            is_solvable = operator == "/" or isinstance(left, Index)
            if inner is not None and is_solvable and divisor > 0:
                return inner, operator, int(divisor)
    return None


def _sum(left: Expression, right: Expression) -> Expression:
    return Binary("+", left, right, INT32)


def _product(left: Expression, factor: int) -> Expression:
    return Binary("*", left, Constant(factor, INT32), INT32)


def range_of(name: str, statement: Statement, extents: Extents) -> tuple[str, str]:
    """Return the range of an index as source: from `where`, or from the sizes that bound it.

    Raises:
        NotInvertibleError: the index occurs only inside larger subscripts.
    """
    printer = Printer({})
    for bounds in statement.ranges:
        if bounds.name == name:
            return f"({printer.expression(bounds.begin)})", f"({printer.expression(bounds.end)})"
    uses = [
        (node, place, subscript)
        for root in (statement.value, *((statement.target,) if statement.target else ()))
        for node in walk(root)
        if isinstance(node, Access)
        for place, subscript in enumerate(node.subscripts)
        if any(isinstance(part, Index) and part.name == name for part in walk(subscript))
    ]
    plain = [use for use in uses if isinstance(use[2], Index)]
    sizes = list(dict.fromkeys(extents.of(node.tensor, place) for node, place, _ in plain))
    is_output_index = name in statement.subscripts and statement.target is None
    if is_output_index and (len(sizes) != 1 or len(plain) < len(uses)):
        return "0", extents.of(statement.output, statement.subscripts.index(name))
    if not sizes:
        raise NotInvertibleError(f"The range of `{name}` does not follow from one size.")
    text = sizes[0]
    for size in sizes[1:]:
        text = f"min({text}, {size})"
    return "0", text


def _coordinates(count: int, statement: Statement) -> list[str]:
    names = {*statement.subscripts, *statement.reductions}
    coordinates: list[str] = []
    for place in range(count):
        name = f"at{place}"
        while name in names:
            name += "_"
        coordinates.append(name)
    return coordinates


def _affine(node: Expression) -> Affine | None:
    """Return a subscript as affine in indices; sizes and scalars are names that begin with a
    dot.
    """
    match node:
        case Constant():
            return Affine((), int(node.value))
        case Index():
            return Affine.index(node.name)
        case Size():
            suffix = "" if node.dimension is None else f".{node.dimension}"
            return Affine.index(f".{node.name}{suffix}")
        case Access() if not node.subscripts:
            return Affine.index(f".{node.tensor}")
        case Cast() if node.operand.type.is_integral:
            return _affine(node.operand)
        case Unary(operator="-"):
            inner = _affine(node.operand)
            return None if inner is None else -inner
        case Binary(operator="+" | "-" | "*"):
            left, right = _affine(node.left), _affine(node.right)
            if left is None or right is None:
                return None
            if node.operator == "*":
                if not left.is_constant:
                    left, right = right, left
                return right * left.constant if left.is_constant else None
            return left + right if node.operator == "+" else left - right
        case _:
            return None


def _names(affine: Affine, indices: tuple[str, ...]) -> list[str]:
    return [name for name in affine.names if name in indices]


def _replaced(affine: Affine, replacements: dict[str, Expression]) -> Expression:
    """Return an affine expression as a tree, with indices replaced."""
    total: Expression = Constant(affine.constant, INT32)
    for name, factor in affine.coefficients:
        node: Expression = replacements.get(name, Index(name))
        if name.startswith("."):
            tensor, _, place = name[1:].partition(".")
            node = Size(tensor, int(place) if place else None)
        term = node if factor == 1 else Binary("*", Constant(factor, INT32), node, INT32)
        is_empty = isinstance(total, Constant) and total.value == 0
        total = term if is_empty else Binary("+", total, term, INT32)
    return total
