"""Reads of elements in a tile: pointers and loads, shared between points."""

from __future__ import annotations

import dataclasses

from ..language.affine import Affine
from ..language.expressions import Expression, Index, walk
from ..language.types import FLOAT64
from .c_types import STORED, c_type
from .elements import Element, elements_of
from .plans import Plan, varies
from .printing import Piece, Printer
from .writer import Context, Writer


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """A point of a tile: its offsets from the loop variables, and its lanes.

    `lanes` is the number of lanes in range, or 0 without vectors.
    """

    offsets: tuple[tuple[str, int], ...] = ()
    lanes: int = 0

    def offset(self, dim: str) -> int:
        """Return the offset from the loop variable of a dimension."""
        return dict(self.offsets).get(dim, 0)


def affine_c(affine: Affine) -> str:
    """Return an affine expression of loop variables as C.

    >>> affine_c(Affine.of({"d0": 4, "r0": 1}, 2))
    '4 * d0 + r0 + 2'
    """
    terms = [
        name if coefficient == 1 else f"{coefficient} * {name}"
        for name, coefficient in affine.coefficients
    ]
    if affine.constant or not terms:
        terms.append(str(affine.constant))
    return " + ".join(terms)


class Reader:
    """Reads elements in a block of C code; its declarations are valid until the end of the block.

    Attributes:
        registers: C names of elements in registers, by tensor and offset.
    """

    def __init__(self, writer: Writer, context: Context, plan: Plan, lanes: int) -> None:
        self._writer, self._context, self._plan, self._lanes = writer, context, plan, lanes
        self._names: dict[object, str] = {}
        self._vector_dim = "" if plan.mode == "scalar" else plan.vector
        self._type = "vd" if plan.real == FLOAT64 else "vf"
        self.registers: dict[tuple[str, Affine], Piece] = {}
        self.packed_rows: Affine | None = None
        """Offset in elements of a row of the packed operand."""

    def printer(self, point: Point) -> Printer:
        """Return a printer of expressions at a point of the tile."""
        return Printer(
            self._context.functions,
            lambda element, mask: self._read(element, mask, point),
            lambda name: self._index(name, point),
            self._plan.real,
        )

    def name(self, prefix: str) -> str:
        """Return an unused C name."""
        return self._context.fresh(prefix)

    def address(self, element: Element, point: Point) -> str:
        """Return the C address of an element, or of its first lane."""
        pointer, constant = self._pointer(element, point)
        return f"{pointer} + {constant}" if constant else pointer

    def _index(self, name: str, point: Point) -> Piece:
        offset = point.offset(name)
        code = f"({name} + {offset})" if offset else name
        if name == self._vector_dim and point.lanes:
            return Piece(f"({self._type}_iota + ({self._type}m){{0}} + (int32_t){code})", True)
        return Piece(code)

    def _read(self, element: Element, mask: str | None, point: Point) -> Piece:
        register = self.registers.get((element.tensor, element.offset))
        if register is not None and not element.gathers:
            return register
        step = element.offset.coefficient(self._vector_dim) if point.lanes else 0
        packed = self._plan.packed
        if packed is not None and packed.element == element and self.packed_rows is not None:
            return self._keep(("packed", point.offset(self._vector_dim)), self._packed(point))
        code = self._load(element, mask, step, point)
        if element.is_guarded:
            return Piece(code, bool(step))
        kind = self._type if step else c_type(element.type)
        pointer, constant = self._pointer(element, point)
        return self._keep((pointer, constant, step, point.lanes if step else 0), code, kind)

    def _keep(self, key: object, code: str, kind: str | None = None) -> Piece:
        kind = kind or self._type
        if key not in self._names:
            name = self._context.fresh("x")
            self._writer.line(f"const {kind} {name} = {code};")
            self._names[key] = name
        return Piece(self._names[key], kind == self._type)

    def _packed(self, point: Point) -> str:
        assert self.packed_rows is not None  # noqa: S101 (checked by the caller)
        place = self.packed_rows + point.offset(self._vector_dim)
        pointer, constant = self._declare("q", Affine(place.coefficients), place.constant)
        return f"*(const {self._type} *)({pointer} + {constant})"

    def _load(self, element: Element, mask: str | None, step: int, point: Point) -> str:
        address = self.address(element, point)
        if not step:
            pointer, constant = self._pointer(element, point)
            return f"{pointer}[{constant}]"
        stored = STORED.get(element.type.name)
        kind = f"{self._type}_{stored}" if stored else self._type
        if mask is not None:
            return f"{kind}_some({address}, {step}, {mask}, {point.lanes})"
        if step != 1:
            return f"{kind}_strided({address}, {step}, {point.lanes})"
        if point.lanes == self._lanes:
            whole = f"({kind})*(const {kind}u *)({address})"
            return f"{kind}_whole({address})" if stored else whole
        return f"{kind}_load({address}, {point.lanes})"

    def _pointer(self, element: Element, point: Point) -> tuple[str, int]:
        """Return a declared pointer and the constant offset of the element from it."""
        constant = element.offset.constant + sum(
            step * point.offset(name) for name, step in element.offset.coefficients
        )
        base = self._context.tensors[element.tensor]
        symbolic = Affine(element.offset.coefficients)
        if not element.gathers:
            return self._declare(base, symbolic, constant, c_type(element.type))
        inner = tuple(
            (name, distance)
            for name, distance in point.offsets
            if any(varies(subscript, name) for _, subscript, _ in element.gathers)
        )
        key = (base, symbolic, element.gathers, inner)
        if key not in self._names or element.is_guarded:
            parts = [affine_c(symbolic)]
            for stride, subscript, limit in element.gathers:
                code = f"(int64_t){self._subscript(subscript, point)}"
                code = f"tc_clamp({code}, {limit})" if limit else code
                parts.append(f"{stride} * {code}")
            place = f"{base} + ({' + '.join(parts)})"
            if element.is_guarded:  # its subscripts must be read under the condition
                return f"({place})", constant
            name = self._context.fresh("p")
            self._writer.line(f"const {c_type(element.type)} *const {name} = {place};")
            self._names[key] = name
        return self._names[key], constant

    def _subscript(self, subscript: Expression, point: Point) -> str:
        return self.printer(Point(point.offsets)).print(subscript).code

    def _declare(
        self, base: str, symbolic: Affine, constant: int, kind: str | None = None
    ) -> tuple[str, int]:
        if symbolic.is_constant:
            return base, constant
        key = (base, symbolic)
        if key not in self._names:
            name = self._context.fresh("p")
            kind = kind or c_type(self._plan.real)
            self._writer.line(f"const {kind} *const {name} = {base} + {affine_c(symbolic)};")
            self._names[key] = name
        return self._names[key], constant


def prefetches(
    values: list[Expression], dim: str, distance: int, context: Context, num_bytes: int
) -> list[str]:
    """Return statements that prefetch the gathers of the step `distance` ahead along `dim`."""
    from .elements import rewrite

    def ahead(node: Expression) -> Expression | None:
        if isinstance(node, Element) and node.offset.coefficient(dim):
            moved = node.offset + node.offset.coefficient(dim) * distance
            return dataclasses.replace(node, offset=moved)
        return None

    lines = []
    for value in values:
        for element in elements_of(value):
            uses_index = any(
                isinstance(node, Index)
                for _, subscript, _ in element.gathers
                for node in walk(subscript)
            )
            if not element.gathers or element.is_guarded or uses_index:
                continue
            parts = [affine_c(Affine(element.offset.coefficients))]
            simple = Printer(
                context.functions,
                lambda read, _: Piece(f"{context.tensors[read.tensor]}[{affine_c(read.offset)}]"),
                Piece,
            )
            if any(inner.gathers for _, s, _ in element.gathers for inner in elements_of(s)):
                continue
            for stride, subscript, limit in element.gathers:
                code = f"(int64_t){simple.print(rewrite(subscript, ahead)).code}"
                parts.append(f"{stride} * {f'tc_clamp({code}, {limit})' if limit else code}")
            place = f"{context.tensors[element.tensor]} + {' + '.join(parts)}"
            lines.append(f"const char *const f{len(lines)} = (const char *)({place});")
            lines += [
                f"__builtin_prefetch(f{len(lines) - 1} + {line});"
                for line in range(0, num_bytes, 64)
            ]
    return lines
