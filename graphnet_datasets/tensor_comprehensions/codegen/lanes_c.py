"""Reductions along contiguous data: lanes accumulate neighbouring terms and are combined last."""

from __future__ import annotations

import itertools

from ..language.types import FLOAT64
from .c_types import c_number
from .elements import Nest, Update
from .plans import Plan
from .printing import Piece
from .reading import Point, Reader
from .tile_c import TileBody
from .writer import Context, Nesting, Writer

_FINAL = {"+": "sum", "*": "product", "min": "least", "max": "greatest"}


class LaneBody:
    """Writes the reductions of several output elements and their epilogues."""

    def __init__(self, nest: Nest, plan: Plan, context: Context, writer: Writer) -> None:
        self._nest, self._plan, self._context, self._writer = nest, plan, context, writer
        self._lanes = context.machine.lanes(plan.real.itemsize)
        self._vector = "vd" if plan.real == FLOAT64 else "vf"
        self._kind = "double" if plan.real == FLOAT64 else "float"

    def write(self, sizes: dict[str, int]) -> None:
        """Write the code for a tile of output elements at the loop variables."""
        rows = self._rows(sizes)
        names = {
            (number, row, part): self._context.fresh("a")
            for number in range(len(self._nest.updates))
            for row in range(len(rows))
            for part in range(self._plan.num_vectors)
        }
        for (number, _, _), name in names.items():
            identity = c_number(self._nest.updates[number].identity, self._plan.real)
            self._writer.line(f"{self._vector} {name} = ({self._vector}){{0}} + {identity};")
        heads = [
            f"for (long {dim.name} = 0; {dim.name} < {dim.extent}; ++{dim.name})"
            for dim in self._nest.reductions
            if dim.name != self._plan.vector
        ]
        with Nesting(heads, self._writer):
            self._steps(rows, names)
        self._finish(rows, names)

    def _rows(self, sizes: dict[str, int]) -> list[tuple[tuple[str, int], ...]]:
        wide = [name for name, size in sizes.items() if size > 1]
        return [
            tuple(zip(wide, offsets, strict=True))
            for offsets in itertools.product(*(range(sizes[name]) for name in wide))
        ]

    def _steps(
        self, rows: list[tuple[tuple[str, int], ...]], names: dict[tuple[int, int, int], str]
    ) -> None:
        """Accumulate contiguous terms: several vectors per step, single vectors, then the rest."""
        name, lanes = self._plan.vector, self._lanes
        extent = self._nest.extents[name]
        stride = self._plan.num_vectors * lanes
        whole, single = extent // stride * stride, extent // lanes * lanes
        if whole:
            with self._writer.block(f"for (long {name} = 0; {name} < {whole}; {name} += {stride})"):
                self._add(rows, names, self._plan.num_vectors, lanes)
        if single - whole > 0:
            if single - whole == lanes:
                with self._writer.block(""):
                    self._writer.line(f"const long {name} = {whole};")
                    self._add(rows, names, 1, lanes)
            else:
                with self._writer.block(
                    f"for (long {name} = {whole}; {name} < {single}; {name} += {lanes})"
                ):
                    self._add(rows, names, 1, lanes)
        if extent > single:
            with self._writer.block(""):
                self._writer.line(f"const long {name} = {single};")
                self._add(rows, names, 1, extent - single)

    def _add(
        self,
        rows: list[tuple[tuple[str, int], ...]],
        names: dict[tuple[int, int, int], str],
        parts: int,
        lanes: int,
    ) -> None:
        reader = Reader(self._writer, self._context, self._plan, self._lanes)
        for place, row in enumerate(rows):
            for part in range(parts):
                point = Point((*row, (self._plan.vector, part * self._lanes)), lanes)
                printer = reader.printer(point)
                for number, update in enumerate(self._nest.updates):
                    name = names[number, place, part]
                    value = printer.broadcast(printer.print(update.value))
                    combined = self._combine(update, name, value)
                    if lanes < self._lanes:  # mask the lanes past the end
                        mask = f"{self._vector}_iota < {lanes}"
                        combined = f"{self._vector}_select({mask}, {combined}, {name})"
                    self._writer.line(f"{name} = {combined};")

    def _combine(self, update: Update, name: str, value: str) -> str:
        if update.operator in "+*":
            return f"{name} {update.operator} {value}"
        return f"{self._vector}_{update.operator}({name}, {value})"

    def _finish(
        self, rows: list[tuple[tuple[str, int], ...]], names: dict[tuple[int, int, int], str]
    ) -> None:
        tile = TileBody(self._nest, self._plan, self._context, self._writer)
        finals: dict[tuple[int, int], str] = {}
        points = [Point(row) for row in rows]
        reader = Reader(self._writer, self._context, self._plan, 1)
        for number, update in enumerate(self._nest.updates):
            for place, point in enumerate(points):
                parts = [names[number, place, part] for part in range(self._plan.num_vectors)]
                while len(parts) > 1:  # combine in pairs, for the shortest chain
                    pairs = itertools.zip_longest(parts[::2], parts[1::2])
                    parts = [
                        left if right is None else f"({self._combine(update, left, right)})"
                        for left, right in pairs
                    ]
                total = f"{self._vector}_{_FINAL[update.operator]}({parts[0]})"
                name = self._context.fresh("s")
                self._writer.line(f"{self._kind} {name} = {total};")
                if update.start != "identity":
                    first = tile.first(update, reader, point)
                    self._writer.line(f"{name} = {tile.combine(update, first, Piece(name))};")
                finals[number, place] = name
        tile.finish(points, finals, self._nest.epilogues)
