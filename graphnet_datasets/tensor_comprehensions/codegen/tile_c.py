"""Register tiles in C: named vector accumulators, shared loads, and stores."""

from __future__ import annotations

import itertools

from ..language.affine import Affine
from ..language.expressions import Cast
from ..language.types import FLOAT64
from .c_types import STORED, c_number, c_type
from .elements import Assign, Element, Nest, Update, elements_of, leaf
from .plans import Plan
from .printing import Piece, scalar_cast
from .reading import Point, Reader, prefetches
from .writer import Context, Writer

_WORDS = {"+": "+", "*": "*"}


class TileBody:
    """Writes the code of a tile at the loop variables of its dimensions."""

    def __init__(self, nest: Nest, plan: Plan, context: Context, writer: Writer) -> None:
        self._nest, self._plan, self._context, self._writer = nest, plan, context, writer
        self._is_scalar = plan.mode != "tile"
        self._lanes = 1 if self._is_scalar else context.machine.lanes(plan.real.itemsize)
        self._vector = "vd" if plan.real == FLOAT64 else "vf"

    def points(self, sizes: dict[str, int]) -> list[Point]:
        """Return the points of a tile in order of computation."""
        names = [name for name, size in sizes.items() if size > 1 and name != self._plan.vector]
        # Rows that read different vectors are outermost, so that few vectors are live at a time.
        names.sort(key=lambda name: not self._has_vectors(name))
        points = []
        for offsets in itertools.product(*(range(sizes[name]) for name in names)):
            place = tuple(zip(names, offsets, strict=True))
            if self._is_scalar:
                points.append(Point(place))
                continue
            extent = sizes[self._plan.vector]
            for start in range(0, extent, self._lanes):
                lanes = min(self._lanes, extent - start)
                points.append(Point((*place, (self._plan.vector, start)), lanes))
        return points

    def _has_vectors(self, name: str) -> bool:
        return any(
            element.offset.coefficient(self._plan.vector) and element.offset.coefficient(name)
            for update in self._nest.updates
            for element in elements_of(update.value)
        )

    def write(
        self, sizes: dict[str, int], rows: Affine | None = None, blocked: bool = False
    ) -> None:
        """Write the tile.

        Args:
            sizes: number of values along each dimension (elements, for the vector dimension).
            rows: offset in elements of the current step's row in the packed operand.
            blocked: add only the terms `kb <= r < ke` of the outermost reduction.
        """
        points = self.points(sizes)
        names = {
            (number, place): f"a{number}_{place}"
            for number in range(len(self._nest.updates))
            for place in range(len(points))
        }
        if self._nest.updates:
            self._start(points, names, blocked)
            self._reduce(points, names, rows, blocked)
        if blocked and self._nest.epilogues:
            with self._writer.block(f"if (ke < {self._nest.reductions[0].extent})"):
                self.finish(points, names, ())
            with self._writer.block("else"):
                self.finish(points, names, self._nest.epilogues)
        else:
            self.finish(points, names, self._nest.epilogues)

    def _start(self, points: list[Point], names: dict[tuple[int, int], str], blocked: bool) -> None:
        reader = self._reader()
        for number, update in enumerate(self._nest.updates):
            for place, point in enumerate(points):
                kind = self._kind(update)
                first = self.first(update, reader, point)
                if blocked:
                    memory = self._memory(update, reader, point)
                    first = f"kb ? {memory} : {first}" if first != memory else memory
                self._writer.line(f"{kind} {names[number, place]} = {first};")

    def first(self, update: Update, reader: Reader, point: Point) -> str:
        """Return the C code of the initial value of an accumulator."""
        if update.start == "memory":
            return self._memory(update, reader, point)
        if update.start == "identity":
            number = c_number(update.identity, update.type)
            if self._is_scalar:
                return number
            return (
                f"({self._vector}){{0}}"
                if update.identity == 0
                else (f"({self._vector}){{0}} + {number}")
            )
        piece = reader.printer(point).print(update.start)  # type: ignore[arg-type]
        return piece.code if self._is_scalar else reader.printer(point).broadcast(piece)

    def _memory(self, update: Update, reader: Reader, point: Point) -> str:
        piece = reader.printer(point).print(leaf(update.target))
        if self._is_scalar:
            return scalar_cast(piece.code, update.target.type, update.type)
        return piece.code

    def _reduce(
        self,
        points: list[Point],
        names: dict[tuple[int, int], str],
        rows: Affine | None,
        blocked: bool,
    ) -> None:
        writer, dims = self._writer, self._nest.reductions
        blocks = []
        for place, dim in enumerate(dims):
            is_innermost = place == len(dims) - 1
            if is_innermost and self._plan.unroll > 1:
                writer.line(f'_Pragma("GCC unroll {self._plan.unroll}")')
            start, stop = ("kb", "ke") if blocked and place == 0 else ("0", str(dim.extent))
            head = f"for (long {dim.name} = {start}; {dim.name} < {stop}; ++{dim.name})"
            blocks.append(writer.block(head))
            blocks[-1].__enter__()
        if self._plan.prefetch and dims:
            self._prefetch(points)
        reader = self._reader()
        reader.packed_rows = rows
        for place, point in enumerate(points):
            printer = reader.printer(point)
            for number, update in enumerate(self._nest.updates):
                name = names[number, place]
                value = printer.print(update.value)
                writer.line(f"{name} = {self.combine(update, name, value)};")
        for block in reversed(blocks):
            block.__exit__(None, None, None)

    def _prefetch(self, points: list[Point]) -> None:
        dim = self._nest.reductions[-1]
        distance = self._plan.prefetch
        if distance >= dim.extent:
            return
        num_bytes = max(
            (dict(point.offsets).get(self._plan.vector, 0) for point in points), default=0
        )
        num_bytes = (num_bytes + self._lanes) * self._plan.real.itemsize
        values = [update.value for update in self._nest.updates]
        lines = prefetches(values, dim.name, distance, self._context, num_bytes)
        if lines:
            with self._writer.block(f"if ({dim.name} < {dim.extent - distance})"):
                for line in lines:
                    self._writer.line(line)

    def combine(self, update: Update, name: str, value: Piece) -> str:
        """Return the C code that combines an accumulator with a value."""
        if update.operator in _WORDS:
            code = f"{name} {update.operator} {value.code}"
            is_narrow = update.type.is_integral and update.type.bits < 32
            return f"({c_type(update.type)})({code})" if is_narrow else code
        if self._is_scalar:
            if update.type.is_float:
                return f"{self._vector}_{update.operator}1({name}, {value.code})"
            sign = "<" if update.operator == "min" else ">"
            # The value may be expensive, so it is evaluated once.
            kind = c_type(update.type)
            return f"({{ {kind} v = {value.code}; {name} {sign} v ? {name} : v; }})"
        vector = value.code if value.is_vector else f"(({self._vector}){{0}} + {value.code})"
        return f"{self._vector}_{update.operator}({name}, {vector})"

    def finish(
        self,
        points: list[Point],
        names: dict[tuple[int, int], str],
        epilogues: tuple[Assign, ...],
    ) -> None:
        """Compute the epilogues at each point, and store the last value of each tensor."""
        reader = self._reader()
        for place, point in enumerate(points):
            last: dict[str, tuple[Element, Piece]] = {}
            for number, update in enumerate(self._nest.updates):
                piece = Piece(names[number, place], not self._is_scalar)
                code = Piece(self._narrowed(piece, update), piece.is_vector)
                last[update.target.tensor] = (update.target, code)
            self._remember(reader, last)
            for assign in epilogues:
                piece = reader.printer(point).print(assign.value)
                name = reader.name("y")
                if self._is_scalar:
                    code = scalar_cast(piece.code, assign.type, assign.target.type)
                    self._writer.line(f"const {c_type(assign.target.type)} {name} = {code};")
                else:
                    code = reader.printer(point).broadcast(piece)
                    if not _is_rounded(assign):
                        code = self._rounded(code, assign.target)
                    self._writer.line(f"const {self._vector} {name} = {code};")
                last[assign.target.tensor] = (assign.target, Piece(name, not self._is_scalar))
                self._remember(reader, last)
            reader.registers.clear()
            for target, piece in last.values():
                self._store(reader, target, piece, point)

    def _narrowed(self, piece: Piece, update: Update) -> str:
        if piece.is_vector:
            return self._rounded(piece.code, update.target)
        if update.type == update.target.type:
            return piece.code
        return scalar_cast(piece.code, update.type, update.target.type)

    def _rounded(self, code: str, target: Element) -> str:
        """Return a vector rounded to the storage type of its tensor."""
        stored = STORED.get(target.type.name)
        return f"{self._vector}_round_{stored}({code})" if stored else code

    def _remember(self, reader: Reader, last: dict[str, tuple[Element, Piece]]) -> None:
        for tensor, (target, piece) in last.items():
            reader.registers[tensor, target.offset] = piece

    def _store(self, reader: Reader, target: Element, piece: Piece, point: Point) -> None:
        kind = c_type(target.type)
        address = f"({kind} *)({reader.address(target, point)})"
        if self._is_scalar:
            self._writer.line(f"*{address} = {piece.code};")
            return
        stored = STORED.get(target.type.name)
        name = f"{self._vector}_{stored}" if stored else self._vector
        step = target.offset.coefficient(self._plan.vector)
        if step != 1:
            self._writer.line(f"{name}_scatter({address}, {step}, {piece.code}, {point.lanes});")
        elif point.lanes < self._lanes:
            self._writer.line(f"{name}_store({address}, {piece.code}, {point.lanes});")
        elif stored:
            self._writer.line(f"{name}_put({address}, {piece.code});")
        else:
            self._writer.line(f"*({name}u *){address} = {piece.code};")

    def _kind(self, update: Update) -> str:
        return c_type(update.type) if self._is_scalar else self._vector

    def _reader(self) -> Reader:
        return Reader(self._writer, self._context, self._plan, self._lanes)


def _is_rounded(assign: Assign) -> bool:
    """Return whether the value has just been converted to the type of its target."""
    value = assign.value
    return isinstance(value, Cast) and value.operand.type == assign.target.type
