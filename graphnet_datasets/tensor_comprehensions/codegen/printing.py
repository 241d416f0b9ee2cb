"""Expressions in C, for a single point or for a vector of neighbouring points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..language.expressions import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Index,
    Select,
    Unary,
)
from ..language.types import FLOAT32, FLOAT64, INT32, ScalarType
from .c_types import STORED, c_number, c_type
from .elements import Element
from .functions import FunctionTable


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A C expression; with `is_vector` it has a value per lane."""

    code: str
    is_vector: bool = False


ElementPrinter = Callable[[Element, "str | None"], Piece]
"""Returns the C code of an element; the second argument is the mask of lanes, None for all."""


class Printer:
    """Prints typed expressions as C.

    Args:
        functions: table of the functions that the code calls.
        element: prints elements read from memory.
        index: prints the value of a dimension.
        real: element type of vectors; None for scalar code.
    """

    def __init__(
        self,
        functions: FunctionTable,
        element: ElementPrinter,
        index: Callable[[str], Piece],
        real: ScalarType | None = None,
    ) -> None:
        self._functions, self._element, self._index = functions, element, index
        self._vector = "vd" if real == FLOAT64 else "vf"
        self._mask: str | None = None

    def print(self, node: Expression) -> Piece:
        """Return the C code of an expression."""
        match node:
            case Constant():
                return Piece(c_number(node.value, node.type))
            case Index():
                piece = self._index(node.name)
                return Piece(f"({c_type(node.type)}){piece.code}") if not piece.is_vector else piece
            case Element():
                return self._element(node, self._mask if node.is_guarded else None)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Select():
                return self._select(node)
            case Cast():
                return self._cast(node)
            case Call():
                return self._call(node)
        raise TypeError(f"{type(node).__name__} cannot occur in an instance.")

    def broadcast(self, piece: Piece) -> str:
        """Return a vector: the expression itself, or its value in every lane."""
        return piece.code if piece.is_vector else f"(({self._vector}){{0}} + {piece.code})"

    def _unary(self, node: Unary) -> Piece:
        inner = self.print(node.operand)
        if node.operator == "!":
            return Piece(f"~{inner.code}" if inner.is_vector else f"!{inner.code}", inner.is_vector)
        code = f"(-{inner.code})"
        narrow = node.type.is_integral and node.type.bits < 32 and not inner.is_vector
        return Piece(f"({c_type(node.type)}){code}" if narrow else code, inner.is_vector)

    def _binary(self, node: Binary) -> Piece:
        left, right = self.print(node.left), self.print(node.right)
        is_vector = left.is_vector or right.is_vector
        if node.operator in ("min", "max"):
            return self._extreme(node, left, right, is_vector)
        if node.operator in ("&&", "||"):
            if not is_vector:
                return Piece(f"({left.code} {node.operator} {right.code})")
            first, second = (
                piece.code if piece.is_vector else self._all(piece) for piece in (left, right)
            )
            return Piece(f"({first} {node.operator[0]} {second})", True)
        if node.operator in COMPARISONS:
            return Piece(f"({left.code} {node.operator} {right.code})", is_vector)
        if node.operator == "%" or (node.operator == "/" and not node.type.is_float):
            word = "mod" if node.operator == "%" else "div"
            return Piece(f"tc_{word}_{node.type.name}({left.code}, {right.code})")
        code = f"({left.code} {node.operator} {right.code})"
        if node.type.is_integral and node.type.bits < 32 and not is_vector:
            return Piece(f"({c_type(node.type)}){code}")
        if node.type == INT32 and is_vector and self._vector == "vd":
            code = f"(({code} << 32) >> 32)"  # lanes of int64 would not wrap around
        return Piece(code, is_vector)

    def _all(self, piece: Piece) -> str:
        return f"(({self._vector}m){{0}} - ({piece.code} != 0))"

    def _extreme(self, node: Binary, left: Piece, right: Piece, is_vector: bool) -> Piece:
        if is_vector:
            first, second = self.broadcast(left), self.broadcast(right)
            return Piece(f"{self._vector}_{node.operator}({first}, {second})", True)
        if node.type.is_float:
            name = "vd" if node.type.bits == 64 else "vf"
            return Piece(f"{name}_{node.operator}1({left.code}, {right.code})")
        sign = "<" if node.operator == "min" else ">"
        return Piece(f"({left.code} {sign} {right.code} ? {left.code} : {right.code})")

    def _select(self, node: Select) -> Piece:
        condition = self.print(node.condition)
        if not condition.is_vector:
            positive, negative = self.print(node.positive), self.print(node.negative)
            if positive.is_vector or negative.is_vector:
                positive = Piece(self.broadcast(positive), True)
                negative = Piece(self.broadcast(negative), True)
            code = f"({condition.code} ? {positive.code} : {negative.code})"
            return Piece(code, positive.is_vector)
        outer = self._mask
        self._mask = condition.code if outer is None else f"({outer} & {condition.code})"
        positive = self.broadcast(self.print(node.positive))
        self._mask = f"~{condition.code}" if outer is None else f"({outer} & ~{condition.code})"
        negative = self.broadcast(self.print(node.negative))
        self._mask = outer
        return Piece(f"{self._vector}_select({condition.code}, {positive}, {negative})", True)

    def _cast(self, node: Cast) -> Piece:
        inner, source, target = self.print(node.operand), node.operand.type, node.type
        if inner.is_vector:
            if source == target or source.name in STORED:  # already float32 lanes
                return inner
            if target.is_integral:  # an index, whose lanes have the width of the vector's lanes
                return inner
            if source.is_bool:
                ones = f"(({self._vector}){{0}} + 1)"
                inner = Piece(f"({self._vector})(({self._vector}m){ones} & {inner.code})", True)
            elif source.is_integral:
                inner = Piece(f"__builtin_convertvector({inner.code}, {self._vector})", True)
            if target.name in STORED:
                return Piece(f"{self._vector}_round_{STORED[target.name]}({inner.code})", True)
            return inner
        return Piece(scalar_cast(inner.code, source, target))

    def _call(self, node: Call) -> Piece:
        pieces = [self.print(argument) for argument in node.arguments]
        if not any(piece.is_vector for piece in pieces):
            name = self._functions.scalar(node.function, node.type)
            return Piece(f"{name}({', '.join(piece.code for piece in pieces)})")
        name = self._functions.vector(node.function, node.type, len(pieces))
        return Piece(f"{name}({', '.join(map(self.broadcast, pieces))})", True)


def scalar_cast(code: str, source: ScalarType, target: ScalarType) -> str:
    """Return the C code of a type conversion."""
    if source == target:
        return code
    if source.name == "bfloat16":
        return scalar_cast(f"tc_from_bfloat({code})", FLOAT32, target)
    if target.name == "bfloat16":
        return f"tc_to_bfloat({scalar_cast(code, source, FLOAT32)})"
    if target.is_bool:
        return f"({code} != 0)"
    return f"(({c_type(target)}){code})"
