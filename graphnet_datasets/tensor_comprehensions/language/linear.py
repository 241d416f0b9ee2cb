"""Affine forms of typed expressions, with numeric values and symbolic sizes for printing."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from .affine import Affine
from .expressions import Access, Binary, Cast, Constant, Expression, Index, Size, Unary
from .types import INT32


@dataclasses.dataclass(frozen=True, slots=True)
class Linear:
    """An affine expression of indices, with its constant also as a symbolic expression of sizes.

    Attributes:
        affine: numeric coefficients and constant.
        symbolic: the constant as an affine expression of the names of sizes, for messages.
    """

    affine: Affine
    symbolic: Affine

    @staticmethod
    def number(value: int) -> Linear:
        """Return a constant that prints as a number."""
        return Linear(Affine((), value), Affine((), value))

    @property
    def value(self) -> int:
        """Numeric value of the constant."""
        return self.affine.constant

    def __add__(self, other: Linear) -> Linear:
        return Linear(self.affine + other.affine, self.symbolic + other.symbolic)

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    def __mul__(self, factor: int) -> Linear:
        return Linear(self.affine * factor, self.symbolic * factor)


@dataclasses.dataclass(slots=True)
class Sizes:
    """Known sizes and constants of a definition.

    Attributes:
        named: values of named sizes.
        tensors: shapes of the tensors known so far.
        constants: values of scalar inputs fixed at compile time.
    """

    named: dict[str, int]
    tensors: dict[str, tuple[int, ...]]
    constants: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def of(self, size: Size) -> int | None:
        """Return the value of a size, or None if the shape of its tensor is unknown."""
        if size.dimension is None:
            return self.named.get(size.name)
        shape = self.tensors.get(size.name)
        return shape[size.dimension] if shape is not None else None


def linear(node: Expression, sizes: Sizes) -> Linear | None:
    """Return the affine form of an integral expression, or None if it is not affine.

    >>> linear(Binary("*", Constant(2, INT32), Index("i"), INT32), Sizes({}, {})).affine.constant
    0
    """
    match node:
        case Constant() if node.type.is_integral:
            return Linear.number(int(node.value))
        case Index():
            return Linear(Affine.index(node.name), Affine())
        case Size():
            value = sizes.of(node)
            name = node.name if node.dimension is None else f"{node.name}.{node.dimension}"
            return None if value is None else Linear(Affine((), value), Affine.index(name))
        case Access() if node.tensor in sizes.constants:
            return Linear(Affine((), sizes.constants[node.tensor]), Affine.index(node.tensor))
        case Cast() if node.type.is_integral and node.type.bits >= INT32.bits:
            return linear(node.operand, sizes)
        case Unary(operator="-"):
            operand = linear(node.operand, sizes)
            return None if operand is None else operand * -1
        case Binary():
            left, right = linear(node.left, sizes), linear(node.right, sizes)
            return None if left is None or right is None else _combine(node, left, right)
        case _:
            return None


def _combine(node: Binary, left: Linear, right: Linear) -> Linear | None:
    match node.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            if not right.affine.is_constant:
                left, right = right, left
            if not right.affine.is_constant:
                return None
            if right.symbolic.is_constant:
                return left * right.value
            if left.affine.is_constant and left.symbolic.is_constant:
                return right * left.value
            product = Affine.index(f"{_group(left.symbolic)} * {_group(right.symbolic)}")
            return Linear(left.affine * right.value, product)
        case "/" | "%" | "min" | "max":
            if not (left.affine.is_constant and right.affine.is_constant):
                return None
            value = fold(node.operator, left.value, right.value)
            symbol = Affine.index(
                f"{_group(left.symbolic)} {node.operator} {_group(right.symbolic)}"
            )
            if node.operator in ("min", "max"):
                symbol = Affine.index(f"{node.operator}({left.symbolic}, {right.symbolic})")
            if left.symbolic.is_constant and right.symbolic.is_constant:
                symbol = Affine((), value)
            return Linear(Affine((), value), symbol)
        case _:
            return None


def quotient(node: Expression, sizes: Sizes) -> tuple[Linear, int] | None:
    """Return `(e, c)` if an integral expression equals `floor(e / c)` with affine `e`, else None.

    Sums and nested divisions are combined: `a / c + b` becomes `(a + c*b) / c`.
    """
    whole = linear(node, sizes)
    if whole is not None:
        return whole, 1
    match node:
        case Binary(operator="/"):
            inner, divisor = quotient(node.left, sizes), linear(node.right, sizes)
            if inner is None or divisor is None:
                return None
            if not divisor.affine.is_constant or divisor.value <= 0:
                return None
            return inner[0], inner[1] * divisor.value
        case Binary(operator="+" | "-"):
            left, right = quotient(node.left, sizes), quotient(node.right, sizes)
            if left is None or right is None:
                return None
            if right[1] == 1:
                sign = 1 if node.operator == "+" else -1
                return left[0] + right[0] * (sign * left[1]), left[1]
            if left[1] == 1 and node.operator == "+":
                return right[0] + left[0] * right[1], right[1]
            return None
        case _:
            return None


def fold(operator: str, left: int, right: int) -> int:
    """Return the value of an integer operation; division by 0 returns 0, as in the language."""
    match operator:
        case "/":
            return left // right if right else 0
        case "%":
            return left % right if right else 0
        case "min":
            return min(left, right)
        case _:
            return max(left, right)


def _group(affine: Affine) -> str:
    return str(affine) if len(affine.names) + bool(affine.constant) < 2 else f"({affine})"


def ceiling(value: Linear, divisor: int) -> Linear:
    """Return a constant divided by a positive number, rounded up."""
    if divisor == 1:
        return value
    result = -(-value.value // divisor)
    if value.symbolic.is_constant:
        return Linear.number(result)
    return Linear(Affine((), result), Affine.index(f"ceil({_group(value.symbolic)}/{divisor})"))


def extreme(values: list[Linear], name: str) -> Linear:
    """Return the smallest ("min") or largest ("max") of several constants."""
    pick = min if name == "min" else max
    value = pick(value.value for value in values)
    sign = 1 if name == "min" else -1
    extremes: list[Linear] = []
    for candidate in values:
        # Of two constants that differ by a number, one is redundant: `min(N, N - 1)` is `N - 1`.
        gaps = [(candidate.symbolic - other.symbolic) * sign for other in extremes]
        if any(gap.is_constant and gap.constant >= 0 for gap in gaps):
            continue
        extremes = [other for other, gap in zip(extremes, gaps, strict=True) if not gap.is_constant]
        extremes.append(candidate)
    values = extremes
    texts = list(dict.fromkeys(str(value.symbolic) for value in values))
    if len(texts) == 1:
        return values[0]
    if all(value.symbolic.is_constant for value in values):
        return Linear.number(value)
    nested = functools.reduce(lambda rest, text: f"{name}({text}, {rest})", reversed(texts))
    return Linear(Affine((), value), Affine.index(nested))


def interval(
    node: Expression, box: Mapping[str, tuple[int, int]], sizes: Sizes
) -> tuple[int, int] | None:
    """Return bounds of an integral expression over a box, or None if it reads a tensor.

    The bounds need not be tight: the operands of an operator are treated as independent.
    """
    exact = linear(node, sizes)
    if exact is not None and all(name in box for name in exact.affine.names):
        return exact.affine.bounds(box)
    match node:
        case Cast() if node.type.is_integral and node.type.bits >= INT32.bits:
            return interval(node.operand, box, sizes)
        case Cast() if node.operand.type.is_bool:
            return 0, 1
        case Unary(operator="-"):
            operand = interval(node.operand, box, sizes)
            return None if operand is None else (-operand[1], -operand[0])
        case Binary():
            left, right = interval(node.left, box, sizes), interval(node.right, box, sizes)
            return None if left is None or right is None else _interval(node.operator, left, right)
        case _:
            return None


def _interval(
    operator: str, left: tuple[int, int], right: tuple[int, int]
) -> tuple[int, int] | None:
    match operator:
        case "+":
            return left[0] + right[0], left[1] + right[1]
        case "-":
            return left[0] - right[1], left[1] - right[0]
        case "*":
            products = [a * b for a in left for b in right]
            return min(products), max(products)
        case "/" if right[0] > 0:
            quotients = [a // b for a in left for b in right]
            return min(quotients), max(quotients)
        case "%" if right[0] > 0:
            inside = right[0] == right[1] and left[0] // right[0] == left[1] // right[0]
            return (left[0] % right[0], left[1] % right[0]) if inside else (0, right[1] - 1)
        case "min" | "max":
            pick = min if operator == "min" else max
            return pick(left[0], right[0]), pick(left[1], right[1])
        case _:
            return None
