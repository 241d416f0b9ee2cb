"""Kernels of one nest: tiles of points, loops over terms, and the statements at each point."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from ..codegen.elements import Element, Nest, Update, leaf
from ..language.affine import Affine
from ..language.expressions import Cast, Expression
from ..language.types import INT32
from .contraction import Contraction, is_narrow
from .frames import Axis, Frame, Lines, Piece
from .functions import Helpers
from .mapping import TritonMapping
from .printing import Printer, Registers, cast, number, triton_type

_GROUP = 8
"""Rows of tiles that run together, so that their operands stay in the cache."""
_FINISH_BLOCK = 256
_MAX_UNROLLED = 64
_SPLIT = "split"
"""Name of the position of a program among those that share a tile."""


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a generated function.

    Attributes:
        arguments: names of the tensors and temporaries that the function takes.
        grid: number of programs: tiles, and shares of the terms of a tile.
    """

    name: str
    arguments: tuple[str, ...]
    grid: tuple[int, int]
    num_warps: int
    num_stages: int


class NestWriter:
    """Writes the kernels of a nest.

    Attributes:
        partials: partial results between two kernels, by name.
    """

    def __init__(
        self,
        nest: Nest,
        mapping: TritonMapping,
        tensors: dict[str, str],
        stored: frozenset[str],
        helpers: Helpers,
        precision: str,
    ) -> None:
        """Prepare the kernels of a nest.

        Args:
            tensors: names of the tensors in generated code.
            stored: tensors whose contents are read after the nest.
            precision: Triton's `input_precision` of products of float32.
        """
        self._nest, self._mapping, self._stored = nest, mapping, stored
        self._tensors, self._helpers, self._precision = dict(tensors), helpers, precision
        self._x = ""
        self.partials: dict[str, Element] = {}

    def write(self, name: str, comments: Sequence[str]) -> tuple[str, list[Launch]]:
        """Return the text of the functions and their launches."""
        mapping = self._mapping
        if not mapping.num_tiles:
            return "", []
        if mapping.split > 1:
            self._declare_partials(name)
        lines = Lines()
        self._main(lines)
        grid = (mapping.num_tiles, mapping.split)
        kernels = [self._kernel(name, lines, grid, mapping.num_warps, mapping.num_stages)]
        text = self._function(kernels[0], lines, comments)
        if mapping.split > 1:
            lines = Lines()
            axis = Axis("x", self._nest.dims, _FINISH_BLOCK)
            self._finish_partials(lines, axis)
            kernels.append(self._kernel(f"{name}_finish", lines, (axis.num_tiles, 1), 4, 1))
            text += self._function(kernels[1], lines, comments)
        return text, kernels

    def _kernel(
        self, name: str, lines: Lines, grid: tuple[int, int], warps: int, stages: int
    ) -> Launch:
        code = lines.text
        names = [tensor for tensor, place in self._tensors.items() if f"({place} + (" in code]
        return Launch(name, tuple(names), grid, warps, stages)

    def _function(self, kernel: Launch, lines: Lines, comments: Sequence[str]) -> str:
        arguments = ", ".join(self._tensors[tensor] for tensor in kernel.arguments)
        body = "".join(f"    {line}\n" for line in (*comments, *lines.text.splitlines()))
        return f"\n\n@triton.jit\ndef {kernel.name}({arguments}):\n{body}"

    def _declare_partials(self, name: str) -> None:
        strides, step = {}, 1
        for dim in reversed(self._nest.dims):
            strides[dim.name] = step
            step *= dim.extent
        offset = Affine.of({**strides, _SPLIT: step})
        for place, update in enumerate(self._nest.updates):
            partial = f"{name}_partial_{place}"
            self.partials[partial] = Element(partial, offset, update.type)
            self._tensors[partial] = f"s{place}"

    def _printer(self, frame: Frame, lines: Lines, registers: Registers | None = None) -> Printer:
        extents = {**self._nest.extents, _SPLIT: self._mapping.split}
        return Printer(frame, lines, self._tensors, extents, self._helpers, registers)

    def _main(self, lines: Lines) -> None:
        scalars, tiles = self._tiles(lines)
        contraction = self._mapping.contraction
        if contraction is not None:
            frame, totals = self._multiply(lines, scalars, tiles, contraction)
        elif self._nest.updates:
            frame, totals = self._reduce(lines, scalars, tiles)
        else:
            frame, totals = self._points(lines, scalars, tiles), []
        printer = self._printer(frame, lines)
        if self._mapping.split > 1:
            for (name, element), total in zip(self.partials.items(), totals, strict=True):
                assert name in self._tensors  # noqa: S101 (declared by the caller)
                printer.store(element, total, self._shape_axis(frame))
            return
        self._finish(printer, totals)

    def _tiles(self, lines: Lines) -> tuple[dict[str, Piece], dict[str, str]]:
        """Return the values of the grid's dimensions, and the tile along each axis."""
        mapping = self._mapping
        scalars: dict[str, Piece] = {}
        lines.line("p = tl.program_id(0)")
        if mapping.split > 1:
            lines.line("s = tl.program_id(1)")
            scalars[_SPLIT] = Piece("s")
        tiles: dict[str, str] = {}
        axes = [(axis.name, axis.num_tiles) for axis in mapping.axes]
        inner = math.prod(count for _, count in axes)
        is_grouped = mapping.contraction is not None and all(count > 1 for _, count in axes)
        if is_grouped:
            (_, rows), (_, columns) = axes
            place = "p" if not mapping.grid else lines.assign("tile", f"p % {inner}")
            width = _GROUP * columns
            first = lines.assign("first", f"{place} // {width} * {_GROUP}")
            height = lines.assign("height", f"tl.minimum({rows} - {first}, {_GROUP})")
            tiles["m"] = lines.assign("tile_m", f"{first} + {place} % {width} % {height}")
            tiles["n"] = lines.assign("tile_n", f"{place} % {width} // {height}")
            axes = []
        counts = [*((dim.name, dim.extent) for dim in mapping.grid), *axes]
        step = inner if is_grouped else 1
        for place, (name, count) in reversed(list(enumerate(counts))):
            code = "p" if step == 1 else f"p // {step}"
            code = f"{code} % {count}" if place else code
            if name in self._nest.extents:
                scalars[name] = Piece(lines.assign(f"{name}_", code))
            else:
                tiles[name] = f"({code})" if count > 1 else ""
            step *= count
        return scalars, tiles

    def _position(self, lines: Lines, axis: Axis, tile: str) -> str:
        """Define the one-dimensional block of positions along an axis of points."""
        if not tile:
            return lines.assign(axis.name, f"tl.arange(0, {axis.block})")
        if axis.extent + axis.block >= 2**31:
            tile = f"{tile}.to(tl.int64)"
        return lines.assign(axis.name, f"{tile} * {axis.block} + tl.arange(0, {axis.block})")

    def _points(self, lines: Lines, scalars: dict[str, Piece], tiles: dict[str, str]) -> Frame:
        axes = [axis for axis in self._mapping.axes if axis.dims]
        frame = Frame(axes, lines, scalars)
        for axis in axes:
            position = self._position(lines, axis, tiles[axis.name])
            frame.place(axis, position, is_ragged=bool(axis.extent % axis.block))
        return frame

    def _reduce(
        self, lines: Lines, scalars: dict[str, Piece], tiles: dict[str, str]
    ) -> tuple[Frame, list[Piece]]:
        """Reduce a tile of points: terms in an axis of the tile, or one after the other."""
        terms, (points,) = self._mapping.terms, self._mapping.axes
        assert terms is not None  # noqa: S101 (a nest with updates has terms)
        is_scalar = terms.block == 1 and not points.dims
        order = [] if is_scalar else ([points] if terms.block == 1 else [points, terms])
        frame = Frame(order, lines, scalars)
        if not is_scalar:
            position = self._position(lines, points, tiles[points.name])
            self._x = frame.place(
                points, position, is_ragged=bool(points.dims and points.extent % points.block)
            )
        sums = [
            lines.assign(
                "a",
                f"tl.full({frame.shape}, {number(update.identity, update.type)}, "
                f"{triton_type(update.type)})",
            )
            for update in self._nest.updates
        ]

        def step() -> None:
            printer = self._printer(frame, lines)
            for update, name in zip(self._nest.updates, sums, strict=True):
                value = printer.print(update.value)
                code = self._combine(update, name, lines.assign("v", value.code))
                if terms.name in frame.masks:
                    code = f"tl.where({frame.masks[terms.name]}, {code}, {name})"
                lines.line(f"{name} = {code}")

        self._terms(lines, [frame], step)
        axes = frozenset({points.name}) if points.dims else frozenset()
        if terms.block > 1:
            sums = [
                lines.assign("a", self._total(update, name))
                for update, name in zip(self._nest.updates, sums, strict=True)
            ]
            frame.masks.pop(terms.name, None)
        return frame, [Piece(name, axes) for name in sums]

    def _terms(self, lines: Lines, frames: Sequence[Frame], step: Callable[[], None]) -> None:
        """Write the loop over the terms of a program around a step."""
        terms, mapping = self._mapping.terms, self._mapping
        assert terms is not None  # noqa: S101 (a nest with updates has terms)
        count, name = mapping.terms_per_program, terms.name
        if not count:
            return
        is_loop = count > terms.block
        # Unrolled steps load at the same time.
        word = "tl.static_range" if terms.block == 1 and count <= _MAX_UNROLLED else "range"
        head = f"for {name}_begin in {word}(0, {count}, {terms.block}):" if is_loop else ""
        with lines.block(head):
            begin = [f"s * {count}"] if mapping.split > 1 else []
            begin += [f"{name}_begin"] if is_loop else []
            if terms.block == 1:
                scalar = f"tl.full([], {' + '.join(begin) or 0}, tl.int32)"
                position = lines.assign(name, scalar)
            else:
                position = lines.assign(name, " + ".join([*begin, f"tl.arange(0, {terms.block})"]))
            is_ragged = count * mapping.split != terms.extent
            for frame in frames:
                if terms.block > 1:
                    frame.place(terms, position, is_ragged=is_ragged)
                else:
                    _place_scalar(frame, terms, position, lines, is_ragged)
            step()

    def _multiply(
        self,
        lines: Lines,
        scalars: dict[str, Piece],
        tiles: dict[str, str],
        contraction: Contraction,
    ) -> tuple[Frame, list[Piece]]:
        """Multiply tiles of the factors with `tl.dot`."""
        (rows, columns), terms = self._mapping.axes, self._mapping.terms
        assert terms is not None  # noqa: S101 (a contraction has terms)
        result = Frame([rows, columns], lines, scalars)
        left = Frame([rows, terms], lines, scalars)
        right = Frame([terms, columns], lines, scalars)
        for axis, frames in ((rows, (result, left)), (columns, (result, right))):
            position = self._position(lines, axis, tiles[axis.name])
            for frame in frames:
                frame.place(axis, position, is_ragged=bool(axis.extent % axis.block))
        sums = [
            lines.assign("a", f"tl.full({result.shape}, 0.0, tl.float32)")
            for _ in self._nest.updates
        ]

        def step() -> None:
            printers = [self._printer(frame, lines) for frame in (left, right)]
            for name, pairs in zip(sums, contraction.factors, strict=True):
                for pair in pairs:
                    operands = [
                        _operand(printer, factor, terms)
                        for printer, factor in zip(printers, pair, strict=True)
                    ]
                    precision = f', input_precision="{self._precision}"'
                    if is_narrow(pair):
                        precision = ""
                    lines.line(f"{name} = tl.dot({', '.join(operands)}, {name}{precision})")

        self._terms(lines, [left, right], step)
        axes = frozenset({rows.name, columns.name})
        return result, [Piece(name, axes) for name in sums]

    def _combine(self, update: Update, first: str, second: str) -> str:
        if update.operator in ("min", "max"):
            sign = "<" if update.operator == "min" else ">"
            return f"tl.where({first} {sign} {second}, {first}, {second})"
        return f"{first} {update.operator} {second}"

    def _total(self, update: Update, name: str) -> str:
        """Return the reduction of a block along its last axis, which keeps extent 1."""
        if update.operator == "*":
            helper = self._helpers.use("tc_multiply")
            code = f"tl.reduce({name}, 1, {helper}, keep_dims=True)"
        else:
            function = {"+": "sum", "min": "min", "max": "max"}[update.operator]
            code = f"tl.{function}({name}, axis=1, keep_dims=True)"
        if update.type.bits < 32:  # Triton widens small integers
            return cast(code, INT32, update.type)
        return code

    def _shape_axis(self, frame: Frame) -> str:
        """Return the axis that gives an address the shape of a total without dimensions."""
        is_block = bool(self._nest.updates) and len(frame.order) > 1
        return self._x if is_block and not self._nest.dims else ""

    def _finish(self, printer: Printer, totals: Sequence[Piece]) -> None:
        """Compute the epilogues from the totals, and store the last value of each tensor."""
        lines = printer.lines
        last: dict[str, tuple[Element, Piece]] = {}
        for update, total in zip(self._nest.updates, totals, strict=True):
            code = total.code
            if update.start == "memory":
                before: Expression = leaf(update.target)
                if update.target.type != update.type:
                    before = Cast(before, update.type)
                start = printer.print(before)
            elif update.start != "identity":
                start = printer.print(update.start)
            else:
                start = None
            if start is not None:
                code = lines.assign("a", self._combine(update, f"({start.code})", code))
            code = cast(code, update.type, update.target.type)
            piece = Piece(lines.assign("y", code), total.axes)
            last[update.target.tensor] = (update.target, piece)
        for tensor, (target, piece) in last.items():
            printer.registers[tensor, target.offset] = piece
        for assign in self._nest.epilogues:
            value = printer.print(assign.value)
            code = cast(value.code, assign.type, assign.target.type)
            piece = Piece(lines.assign("y", code), value.axes)
            last[assign.target.tensor] = (assign.target, piece)
            printer.registers[assign.target.tensor, assign.target.offset] = piece
        for tensor, (target, piece) in last.items():
            if tensor in self._stored:
                printer.store(target, piece, self._shape_axis(printer.frame))

    def _finish_partials(self, lines: Lines, axis: Axis) -> None:
        """Combine the partial results of all shares, then finish each point."""
        lines.line("p = tl.program_id(0)")
        frame = Frame([axis] if axis.dims else [], lines, {})
        if axis.dims:
            position = self._position(lines, axis, "p" if axis.num_tiles > 1 else "")
            frame.place(axis, position, is_ragged=bool(axis.extent % axis.block))
        totals = []
        for update in self._nest.updates:
            identity = number(update.identity, update.type)
            kind = triton_type(update.type)
            totals.append(lines.assign("a", f"tl.full({frame.shape}, {identity}, {kind})"))
        with lines.block(f"for share in range(0, {self._mapping.split}):"):
            frame.values[_SPLIT] = Piece(lines.assign("s", "tl.full([], share, tl.int32)"))
            printer = self._printer(frame, lines)
            for update, total, element in zip(
                self._nest.updates, totals, self.partials.values(), strict=True
            ):
                partial = printer.print(leaf(element))
                lines.line(f"{total} = {self._combine(update, total, partial.code)}")
        axes = frozenset(frame.order)
        self._finish(self._printer(frame, lines), [Piece(total, axes) for total in totals])


def _place_scalar(frame: Frame, terms: Axis, position: str, lines: Lines, is_ragged: bool) -> None:
    """Define the dimensions of terms that are processed one after the other."""
    inner = 1
    for place, dim in reversed(list(enumerate(terms.dims))):
        code = position if inner == 1 else f"{position} // {inner}"
        code = f"{code} % {dim.extent}" if place else code
        frame.values[dim.name] = Piece(lines.assign(f"{dim.name}_", code))
        inner *= dim.extent
    if is_ragged:
        frame.masks[terms.name] = lines.assign("in_r", f"{position} < {terms.extent}")


def _operand(printer: Printer, factor: Expression, terms: Axis) -> str:
    """Return a factor as a whole block, with zeros in place of terms out of range."""
    frame = printer.frame
    piece = printer.print(factor)
    code = piece.code
    inner = factor.operand if isinstance(factor, Cast) else factor
    is_zeroed = isinstance(inner, Element) and not inner.gathers and terms.name in piece.axes
    mask = frame.masks.get(terms.name)
    if mask is not None and not is_zeroed:
        code = f"tl.where({mask}, {code}, 0.0)"
        piece = Piece(code, piece.axes | {terms.name})
    if len(piece.axes) < 2:
        code = f"tl.broadcast_to({code}, {frame.shape})"
    return printer.lines.assign("f", code)
