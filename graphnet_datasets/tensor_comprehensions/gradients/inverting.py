"""Solve the subscripts of an access for the indices of its statement."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class Inverse:
    """A statement's indices in terms of the coordinates of what it reads.

    Attributes:
        subscripts: the names of the coordinates.
        replacements: what the solved indices are.
        guards: the conditions under which they are in range.
        ranges: begin and end, as text, of the indices that are left.
    """

    subscripts: tuple[str, ...]
    replacements: dict[str, Expression]
    guards: tuple[str, ...]
    ranges: dict[str, tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Extents:
    """The sizes of tensors as text.

    Attributes:
        declared: the declared sizes of inputs, by which equal ones are seen to be equal.
        outputs: the tensor that has the sizes of an output, its given gradient.
    """

    declared: Mapping[str, tuple[str | int, ...]]
    outputs: Mapping[str, str]

    def of(self, tensor: str, place: int) -> str:
        """Return a size."""
        if tensor in self.declared:
            return str(self.declared[tensor][place])
        return f"{self.outputs.get(tensor, tensor)}.{place}"


def invert(access: Access, statement: Statement, extents: Extents) -> Inverse:
    """Return the inverse of an access's subscripts.

    Raises:
        TensorComprehensionError: a subscript is not an affine expression with an index of its own.
    """
    indices = (*statement.subscripts, *statement.reductions)
    names = _coordinates(len(access.subscripts), statement)
    affine = [_affine(each) for each in access.subscripts]
    if any(each is None for each in affine):
        raise _refused(access, "a subscript is not an affine expression of indices and sizes")
    parts = [each for each in affine if each is not None]
    replacements: dict[str, Expression] = {}
    guards: list[str] = []
    printer = Printer({})
    # Plain indices first: they leave less to solve for the others.
    order = sorted(range(len(parts)), key=lambda place: len(_names(parts[place], indices)))
    for place in order:
        part = _replaced(parts[place], replacements)
        own = [name for name in _names(parts[place], indices) if name not in replacements]
        solvable = [name for name in own if abs(parts[place].coefficient(name)) == 1]
        others = {n for p in order if p != place for n in _names(parts[p], indices)}
        solvable.sort(key=lambda name: (name in others, name not in statement.subscripts))
        coordinate: Expression = Index(names[place])
        if not own:
            guards.append(f"{names[place]} == {printer.expression(part)}")
            continue
        if not solvable:
            raise _refused(access, "no index of a subscript has the coefficient 1 or -1")
        chosen = solvable[0]
        if parts[place] == Affine.index(chosen):
            replacements[chosen] = coordinate
        else:
            sign = parts[place].coefficient(chosen)
            rest = _replaced(parts[place] - Affine.index(chosen) * sign, replacements)
            solved = Binary("-", coordinate, rest, INT32)
            replacements[chosen] = solved if sign == 1 else Unary("-", solved, INT32)
        begin, end = range_of(chosen, statement, extents)
        text = printer.expression(replacements[chosen])
        is_coordinate = replacements[chosen] == coordinate
        if not (is_coordinate and begin == "0"):
            guards.append(f"{text} >= {begin}")
        if not (is_coordinate and end == extents.of(access.tensor, place)):
            guards.append(f"{text} < {end}")
    ranges = {
        name: range_of(name, statement, extents) for name in indices if name not in replacements
    }
    return Inverse(tuple(names), replacements, tuple(guards), ranges)


def range_of(name: str, statement: Statement, extents: Extents) -> tuple[str, str]:
    """Return the range of an index as text: as `where` says, or the sizes that bound it.

    Raises:
        TensorComprehensionError: it occurs only inside of larger subscripts.
    """
    printer = Printer({})
    for each in statement.ranges:
        if each.name == name:
            return f"({printer.expression(each.begin)})", f"({printer.expression(each.end)})"
    uses = [
        (node, place, subscript)
        for node in walk(statement.value)
        if isinstance(node, Access)
        for place, subscript in enumerate(node.subscripts)
        if any(isinstance(each, Index) and each.name == name for each in walk(subscript))
    ]
    plain = [each for each in uses if isinstance(each[2], Index)]
    sizes = list(dict.fromkeys(extents.of(node.tensor, place) for node, place, _ in plain))
    if name in statement.subscripts and (len(sizes) != 1 or len(plain) < len(uses)):
        return "0", extents.of(statement.output, statement.subscripts.index(name))
    if not sizes:
        raise TensorComprehensionError(
            f"The range of `{name}` is not given by a tensor's size, so that no gradient is "
            f"derived. Give it with `where {name} in 0:…`."
        )
    text = sizes[0]
    for each in sizes[1:]:
        text = f"min({text}, {each})"
    return "0", text


def _coordinates(count: int, statement: Statement) -> list[str]:
    taken = {*statement.subscripts, *statement.reductions}
    found: list[str] = []
    for place in range(count):
        name = f"at{place}"
        while name in taken:
            name += "_"
        found.append(name)
    return found


def _affine(node: Expression) -> Affine | None:
    """Return a subscript as affine in indices, and sizes and scalars with a dot before them."""
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
    """Return an affine expression as a tree with indices replaced."""
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


def _refused(access: Access, why: str) -> TensorComprehensionError:
    text = " ".join(access.span.text.split()) if access.span else access.tensor
    return TensorComprehensionError(
        f"The gradient of `{text}` is not derived: {why}. Give the backward definition yourself "
        "(`backward=`)."
    )
