"""Expressions of nests as Triton.

Types are those of the language: every constant and conversion has an explicit type, so Triton's
own promotion of types never applies.
"""

from __future__ import annotations

from ..codegen.elements import Element
from ..codegen.splitting import affine_of
from ..language.affine import Affine
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
from ..language.types import FLOAT32, INT32, ScalarType
from .frames import Frame, Lines, Piece, conjunction
from .functions import Helpers, function_code

Registers = dict[tuple[str, Affine], Piece]


def triton_type(scalar: ScalarType) -> str:
    """Return Triton's name of a type.

    >>> triton_type(FLOAT32)
    'tl.float32'
    """
    return "tl.int1" if scalar.is_bool else f"tl.{scalar.name}"


def number(value: int | float | bool, scalar: ScalarType) -> str:
    """Return a literal without its type.

    >>> number(float("-inf"), FLOAT32), number(2, FLOAT32), number(-3, INT32)
    ('float("-inf")', '2.0', '-3')
    """
    if scalar.is_float:
        text = repr(float(value))
        return f'float("{text}")' if text.lstrip("-") in ("inf", "nan") else text
    return str(int(value))


def constant(value: int | float | bool, scalar: ScalarType) -> str:
    """Return a scalar of the given type."""
    return f"tl.full([], {number(value, scalar)}, {triton_type(scalar)})"


class Printer:
    """Prints expressions in one block of code; its assignments are valid until the block ends.

    Attributes:
        registers: values of elements that have been computed.
    """

    def __init__(
        self,
        frame: Frame,
        lines: Lines,
        tensors: dict[str, str],
        extents: dict[str, int],
        helpers: Helpers,
        registers: Registers | None = None,
    ) -> None:
        self.frame, self.lines, self.tensors, self.helpers = frame, lines, tensors, helpers
        self._box = {name: (0, extent) for name, extent in extents.items()}
        self.registers: Registers = registers or {}
        self._mask: Piece | None = None
        self._loads: dict[tuple[str, str, str], str] = {}

    def print(self, node: Expression) -> Piece:
        """Return the value of an expression."""
        match node:
            case Element():
                return self._read(node)
            case Constant():
                return Piece(constant(node.value, node.type))
            case Index():
                piece = self.frame.values[node.name]
                code = (
                    piece.code
                    if node.type == INT32
                    else f"{piece.code}.to({triton_type(node.type)})"
                )
                return Piece(code, piece.axes)
            case Unary():
                inner = self.print(node.operand)
                if node.operator == "!":
                    return Piece(f"({inner.code} == 0)", inner.axes)
                # A product keeps the sign of zero.
                code = f"({inner.code} * -1)" if node.type.is_float else f"(0 - {inner.code})"
                return Piece(code, inner.axes)
            case Binary():
                return self._binary(node)
            case Select():
                return self._select(node)
            case Cast():
                inner = self.print(node.operand)
                return Piece(cast(inner.code, node.operand.type, node.type), inner.axes)
            case Call():
                pieces = [self.print(argument) for argument in node.arguments]
                code = function_code(node.function, node.type, [piece.code for piece in pieces])
                return Piece(code, _axes(*pieces))
        raise TypeError(f"{type(node).__name__} cannot occur in an instance.")

    def address(self, element: Element) -> Piece:
        """Return the offset of an element in its tensor."""
        wide = any(abs(bound) >= 2**31 for bound in element.offset.bounds(self._box))
        place = self._affine(element.offset, wide)
        for stride, subscript, limit in element.gathers:
            inner = self.print(subscript)
            code = inner.code
            if subscript.type.name != "int64":
                code = f"{code}.to(tl.int64)"
            if limit:
                code = f"tl.minimum(tl.maximum({code}, 0), {limit - 1})"
            term = code if stride == 1 else f"{code} * {stride}"
            code = term if place.code == "0" else f"{place.code} + {term}"
            place = Piece(code, place.axes | inner.axes)
        return place

    def store(self, element: Element, value: Piece, shape_axis: str = "") -> None:
        """Store a value of the element's type at the points in range.

        Args:
            shape_axis: an axis of extent 1 that gives the address the shape of the value.
        """
        place = self.address(element)
        code, axes = place.code, place.axes
        if shape_axis:
            code, axes = f"{code} + {shape_axis}", axes | {next(iter(self.frame.order))}
        mask = conjunction(self.frame.mask(axes))
        masked = f", mask={mask.code}" if mask else ""
        self.lines.line(
            f"tl.store({self.tensors[element.tensor]} + ({code}), {value.code}{masked})"
        )

    def _affine(self, offset: Affine, wide: bool) -> Piece:
        terms, axes = [], frozenset()
        for name, coefficient in offset.coefficients:
            value = self.frame.values[name]
            code = f"{value.code}.to(tl.int64)" if wide else value.code
            terms.append(code if coefficient == 1 else f"{code} * {coefficient}")
            axes |= value.axes
        if offset.constant or not terms:
            terms.append(str(offset.constant))
        return Piece(" + ".join(terms), axes)

    def _read(self, element: Element) -> Piece:
        if not element.gathers and (element.tensor, element.offset) in self.registers:
            return self.registers[element.tensor, element.offset]
        place = self.address(element)
        conditions = self.frame.mask(place.axes)
        if self._mask is not None and (element.is_guarded or element.gathers):
            conditions.append(self._mask)
        mask = conjunction(conditions)
        code, axes = place.code, place.axes
        if mask is not None and not mask.axes <= axes:
            # The condition varies along more axes than the address.
            axes |= mask.axes
            code = f"tl.where({mask.code}, {code}, 0)"
        masked = f", mask={mask.code}, other=0" if mask else ""
        key = (element.tensor, code, masked)
        if key not in self._loads:
            load = f"tl.load({self.tensors[element.tensor]} + ({code}){masked})"
            self._loads[key] = self.lines.assign("v", load)
        return Piece(self._loads[key], axes)

    def _binary(self, node: Binary) -> Piece:
        left, right = self._operands(node)
        axes = left.axes | right.axes
        if node.operator in ("min", "max"):
            sign = "<" if node.operator == "min" else ">"
            first, second = (self._named(piece) for piece in (left, right))
            return Piece(f"tl.where({first} {sign} {second}, {first}, {second})", axes)
        if node.operator in ("&&", "||"):
            return Piece(f"({left.code} {node.operator[0]} {right.code})", axes)
        if node.operator in COMPARISONS:
            return Piece(f"({left.code} {node.operator} {right.code})", axes)
        if node.operator in ("/", "%"):
            return Piece(self._quotient(node, left, right), axes)
        return Piece(f"({left.code} {node.operator} {right.code})", axes)

    def _operands(self, node: Binary) -> tuple[Piece, Piece]:
        """Return both operands; a constant beside a value needs no type if it is the default."""
        pieces = []
        for part, other in ((node.left, node.right), (node.right, node.left)):
            is_plain = part.type in (INT32, FLOAT32) and not isinstance(other, Constant)
            if isinstance(part, Constant) and is_plain:
                text = number(part.value, part.type)
                pieces.append(Piece(f"({text})" if text.startswith("-") else text))
            else:
                pieces.append(self.print(part))
        return pieces[0], pieces[1]

    def _quotient(self, node: Binary, left: Piece, right: Piece) -> str:
        scalar = node.left.type
        if scalar.is_float and node.operator == "/":
            if scalar == FLOAT32:
                return f"tl.div_rn({self.print(node.left).code}, {self.print(node.right).code})"
            return f"({left.code} / {right.code})"
        if self._truncates_like_floor(node):
            sign = "//" if node.operator == "/" else "%"
            return f"({left.code} {sign} {right.code})"
        word = "mod" if node.operator == "%" else "div"
        kind = "float" if scalar.is_float else ("signed" if scalar.kind == "int" else "unsigned")
        name = self.helpers.use(f"tc_{word}_{kind}")
        return f"{name}({self.print(node.left).code}, {self.print(node.right).code})"

    def _truncates_like_floor(self, node: Binary) -> bool:
        """Return whether an index that is never negative is divided by a positive constant."""
        divisor, dividend = affine_of(node.right), affine_of(node.left)
        if divisor is None or dividend is None:
            return False
        is_positive = divisor.is_constant and divisor.constant > 0
        return is_positive and dividend.bounds(self._box)[0] >= 0

    def _named(self, piece: Piece) -> str:
        simple = piece.code.isidentifier() or piece.code.replace(".", "").isdigit()
        return piece.code if simple else self.lines.assign("v", piece.code)

    def _select(self, node: Select) -> Piece:
        printed = self.print(node.condition)
        condition = Piece(self._named(printed), printed.axes)
        outer = self._mask
        self._mask = conjunction([outer, condition] if outer else [condition])
        positive = self.print(node.positive)
        opposite = Piece(f"({condition.code} == 0)", condition.axes)
        self._mask = conjunction([outer, opposite] if outer else [opposite])
        negative = self.print(node.negative)
        self._mask = outer
        code = f"tl.where({condition.code}, {positive.code}, {negative.code})"
        return Piece(code, _axes(condition, positive, negative))


def _axes(*pieces: Piece) -> frozenset[str]:
    return frozenset().union(*(piece.axes for piece in pieces))


def cast(code: str, source: ScalarType, target: ScalarType) -> str:
    """Return a conversion between types."""
    if source == target:
        return code
    if target.is_bool:
        return f"({code} != 0)"
    if target.name == "bfloat16" and source.name != "float32":
        code = f"{code}.to(tl.float32)"
    return f"{code}.to({triton_type(target)})"
