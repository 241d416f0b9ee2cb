"""Body of a CUDA kernel: loops over tiles and points, copies, and reductions in registers."""

from __future__ import annotations

from ..codegen.c_types import c_number, c_type
from ..codegen.elements import Element, Nest, Update
from ..codegen.plans import Plan
from ..codegen.printing import Piece
from ..codegen.reading import Point, Reader
from ..codegen.tile_c import TileBody
from ..codegen.writer import Context, Nesting, Writer
from ..options import Options
from .mapping import Mapping, Staged


class _SharedReader(Reader):
    """Reads staged elements from their copies, other elements from global memory."""

    def __init__(
        self, writer: Writer, context: Context, plan: Plan, mapping: Mapping, inputs: set[str]
    ) -> None:
        super().__init__(writer, context, plan, 1)
        self._dims = list(plan.order)
        self._mapping, self._inputs = mapping, inputs
        self.reads_copies = False
        self.reads_registers = False

    def _read(self, element: Element, mask: str | None, point: Point) -> Piece:
        if self.reads_copies:
            for place, staged in enumerate(self._mapping.staged):
                if staged.element == element and self.reads_registers:
                    return Piece(f"p{place}{_register_place(staged, self._dims)}")
                if staged.element == element:
                    return Piece(f"s{place}[{_copy_place(staged)}]")
        piece = super()._read(element, mask, point)
        if element.tensor in self._inputs and not element.is_guarded and "[" in piece.code:
            return Piece(f"__ldg(&{piece.code})")
        return piece


def _register_place(staged: Staged, dims: list[str]) -> str:
    """Return the subscripts of a thread's private copy at the current point."""
    return "".join(f"[u_{name}]" for name in dims if name in staged.dims)


def _copy_place(staged: Staged) -> str:
    """Return the position of the current point's element in its copy."""
    place = ""
    widths = [*staged.extents[1:-1], staged.row] if len(staged.dims) > 1 else []
    for position, name in enumerate(staged.dims):
        local = f"({name} - b_{name})"
        place = local if not place else f"({place}) * {widths[position - 1]} + {local}"
    return place


class KernelBody:
    """Writes the body of the kernel for one nest."""

    def __init__(
        self,
        nest: Nest,
        mapping: Mapping,
        options: Options,
        context: Context,
        writer: Writer,
        inputs: set[str],
    ) -> None:
        self._nest, self._mapping, self._options = nest, mapping, options
        self._context, self._writer, self._inputs = context, writer, inputs
        last = (*nest.updates, *nest.epilogues)[-1]
        order = tuple(dim.name for dim in nest.dims)
        self._plan = Plan("scalar", last.type, "", 1, (), order)
        self._tile = TileBody(nest, self._plan, context, writer)
        self._shared_bytes = 0

    def write(self) -> int:
        """Write the body; return the declared shared memory in bytes."""
        self._declare_shared()
        with Nesting(self._tile_loops(), self._writer):
            if self._mapping.reduced:
                self._block_reduction()
            elif self._mapping.staged:
                self._staged_tile()
            else:
                self._plain_tile()
        return self._shared_bytes

    def _tile_loops(self) -> list[str]:
        """Return the heads of the loops over tiles, distributed over blocks where mapped."""
        heads = []
        extents = self._nest.extents
        for dim in self._nest.dims:
            tile, name = self._mapping.tiles[dim.name], dim.name
            if name in self._mapping.block_dims:
                axis = "xyz"[self._mapping.block_dims.index(name)]
                start, step = f"(long)blockIdx.{axis} * {tile}", f"(long)gridDim.{axis} * {tile}"
            else:
                start, step = "0", str(tile)
            head = f"for (long b_{name} = {start}; b_{name} < {extents[name]}; b_{name} += {step})"
            heads.append(head)
        return heads

    def _point_heads(self) -> list[str]:
        heads = []
        for dim in self._nest.dims:
            name, tile = dim.name, self._mapping.tiles[dim.name]
            start, step = f"b_{name}", "1"
            if name in self._mapping.thread_dims:
                axis = "xyz"[self._mapping.thread_dims.index(name)]
                start, step = f"b_{name} + threadIdx.{axis}", f"blockDim.{axis}"
            end = f"b_{name} + {tile} && {name} < {dim.extent}"
            heads.append(f"for (long {name} = {start}; {name} < {end}; {name} += {step})")
        return heads

    def _reader(self) -> _SharedReader:
        return _SharedReader(self._writer, self._context, self._plan, self._mapping, self._inputs)

    def _start(self, update: Update, reader: Reader) -> str:
        return self._tile.first(update, reader, Point())

    def _plain_tile(self) -> None:
        """Compute the points of a thread one by one, with the accumulators in registers."""
        writer, updates = self._writer, self._nest.updates
        with Nesting(self._point_heads(), writer):
            names = {(number, 0): self._context.fresh("a") for number in range(len(updates))}
            reader = self._reader()
            for number, update in enumerate(updates):
                first = self._start(update, reader)
                writer.line(f"{c_type(update.type)} {names[number, 0]} = {first};")
            if updates:
                if self._options.unroll > 1:
                    writer.line(f"#pragma unroll {self._options.unroll}")
                heads = [
                    f"for (long {dim.name} = 0; {dim.name} < {dim.extent}; ++{dim.name})"
                    for dim in self._nest.reductions
                ]
                with Nesting(heads, writer):
                    self._add(names, self._reader())
            self._tile.finish([Point()], names, self._nest.epilogues)

    def _add(self, names: dict[tuple[int, int], str], reader: Reader) -> None:
        printer = reader.printer(Point())
        for number, update in enumerate(self._nest.updates):
            value = printer.print(update.value)
            name = names[number, 0]
            self._writer.line(f"{name} = {self._combine(update, name, value)};")

    def _combine(self, update: Update, name: str, value: Piece) -> str:
        if update.operator in ("min", "max") and not update.type.is_float:
            kind, term = c_type(update.type), self._context.fresh("v")
            self._writer.line(f"const {kind} {term} = {value.code};")
            sign = "<" if update.operator == "min" else ">"
            return f"{name} {sign} {term} ? {name} : {term}"
        prefix = "vd" if update.type.bits == 64 else "vf"
        if update.operator in ("min", "max"):
            return f"{prefix}_{update.operator}1({name}, {value.code})"
        return self._tile.combine(update, name, value)

    def _block_reduction(self) -> None:
        """Share the terms of an element among the threads of a block; combine their sums as a tree.

        All threads reach every barrier, because the surrounding loops are the same for the block.
        """
        writer, mapping, nest = self._writer, self._mapping, self._nest
        reduced, width = mapping.reduced, mapping.block[0]
        for name, dim in ((axis.name, axis) for axis in nest.dims):
            writer.line(f"const long {name} = b_{name};  // one of {dim.extent}")
        names = {(number, 0): self._context.fresh("a") for number in range(len(nest.updates))}
        for number, update in enumerate(nest.updates):
            identity = c_number(update.identity, update.type)
            writer.line(f"{c_type(update.type)} {names[number, 0]} = {identity};")
        heads = [
            f"for (long {dim.name} = {'threadIdx.x' if dim.name == reduced else '0'}; "
            f"{dim.name} < {dim.extent}; "
            f"{dim.name} += {'blockDim.x' if dim.name == reduced else '1'})"
            for dim in nest.reductions
        ]
        with Nesting(heads, writer):
            self._add(names, self._reader())
        for number in range(len(nest.updates)):
            name = names[number, 0]
            writer.line("__syncthreads();")
            writer.line(f"r{number}[threadIdx.x] = {name};")
            with writer.block(f"for (int w = {_power_below(width)}; w > 0; w /= 2)"):
                writer.line("__syncthreads();")
                writer.line(
                    f"if (threadIdx.x < w && threadIdx.x + w < {width}) "
                    f"r{number}[threadIdx.x] += r{number}[threadIdx.x + w];"
                )
            writer.line("__syncthreads();")
            writer.line(f"{name} = r{number}[0];")
        with writer.block("if (threadIdx.x == 0)"):
            reader = self._reader()
            for number, update in enumerate(nest.updates):
                if update.start != "identity":
                    name = names[number, 0]
                    first = self._start(update, reader)
                    writer.line(f"{name} = {self._combine(update, first, Piece(name))};")
            self._tile.finish([Point()], names, nest.epilogues)

    def _staged_tile(self) -> None:
        """Stage tiles of the inputs in shared memory, one block of terms at a time.

        Accumulators are arrays that stay in registers, because their subscripts are constants once
        the loops are unrolled.
        """
        writer, nest, mapping = self._writer, self._nest, self._mapping
        inner = nest.reductions[-1]
        counts = [mapping.per_thread(dim.name) for dim in nest.dims]
        shape = "".join(f"[{count}]" for count in counts) or "[1]"
        subscript = "".join(f"[u_{dim.name}]" for dim in nest.dims) or "[0]"
        names = {(number, 0): f"a{number}{subscript}" for number in range(len(nest.updates))}
        for number, update in enumerate(nest.updates):
            writer.line(f"{c_type(update.type)} a{number}{shape};")
        with self._points():
            reader = self._reader()
            for number, update in enumerate(nest.updates):
                writer.line(f"{names[number, 0]} = {self._start(update, reader)};")
        heads = [
            f"for (long {dim.name} = 0; {dim.name} < {dim.extent}; ++{dim.name})"
            for dim in nest.reductions[:-1]
        ]
        tile = mapping.term_tile
        heads.append(
            f"for (long b_{inner.name} = 0; b_{inner.name} < {inner.extent}; "
            f"b_{inner.name} += {tile})"
        )
        with Nesting(heads, writer):
            writer.line("__syncthreads();")
            for place in range(len(mapping.staged)):
                self._copy(place)
            writer.line("__syncthreads();")
            end = f"b_{inner.name} + {tile} && {inner.name} < {inner.extent}"
            if self._options.unroll > 1:
                writer.line(f"#pragma unroll {self._options.unroll}")
            head = f"for (long {inner.name} = b_{inner.name}; {inner.name} < {end}; ++{inner.name})"
            with writer.block(head):
                reader = self._reader()
                reader.reads_copies = True
                if self._keeps_registers():
                    self._to_registers()
                    reader.reads_registers = True
                with self._points():
                    self._add(names, reader)
        with self._points():
            self._tile.finish([Point()], names, nest.epilogues)

    def _keeps_registers(self) -> bool:
        cuda = self._options.cuda
        return cuda.use_private and cuda.private_depth != 0

    def _to_registers(self) -> None:
        """Load the data shared by the points of a thread into registers, each value once."""
        writer = self._writer
        dims = [dim.name for dim in self._nest.dims]
        for place, staged in enumerate(self._mapping.staged):
            own = [name for name in dims if name in staged.dims]
            shape = "".join(f"[{self._mapping.per_thread(name)}]" for name in own)
            writer.line(f"{c_type(staged.element.type)} p{place}{shape};")
            heads, lines = self._unrolled_heads(own), self._point_lines(own)
            conditions = [f"{name} < b_{name} + {self._mapping.tiles[name]}" for name in own]
            with Nesting(heads, writer, lines):
                condition = " && ".join(conditions)
                value = f"s{place}[{_copy_place(staged)}]"
                value = f"{condition} ? {value} : 0" if condition else value
                writer.line(f"p{place}{_register_place(staged, dims)} = {value};")

    def _points(self) -> Nesting:
        """Return blocks around the code that runs for each point of a thread that is in range."""
        lines = [*self._point_lines(), f"if (!({self._in_range()})) continue;"]
        return Nesting(
            self._unrolled_heads() or ["for (int u = 0; u < 1; ++u)"], self._writer, lines
        )

    def _unrolled_heads(self, names: list[str] | None = None) -> list[str]:
        heads = []
        for dim in self._nest.dims:
            if names is None or dim.name in names:
                name, count = dim.name, self._mapping.per_thread(dim.name)
                heads.append(f"for (int u_{name} = 0; u_{name} < {count}; ++u_{name})")
        return heads

    def _point_lines(self, names: list[str] | None = None) -> list[str]:
        lines = []
        for dim in self._nest.dims:
            name, dims = dim.name, self._mapping.thread_dims
            if names is not None and name not in names:
                continue
            if name in dims:
                axis = "xyz"[dims.index(name)]
                local = f"threadIdx.{axis} + u_{name} * blockDim.{axis}"
            else:
                local = f"u_{name}"
            lines.append(f"const long {name} = b_{name} + {local};")
        return lines

    def _in_range(self) -> str:
        return (
            " && ".join(
                f"{dim.name} < b_{dim.name} + {self._mapping.tiles[dim.name]} "
                f"&& {dim.name} < {dim.extent}"
                for dim in self._nest.dims
            )
            or "1"
        )

    def _copy(self, place: int) -> None:
        """Copy a tile of an input with all threads; elements out of range become 0."""
        staged, writer, mapping = self._mapping.staged[place], self._writer, self._mapping
        threads = mapping.block[0] * mapping.block[1] * mapping.block[2]
        count = 1
        for extent in staged.extents:
            count *= extent
        me = "threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)"
        if self._options.cuda.unroll_copy_shared:
            writer.line("#pragma unroll")
        with writer.block(f"for (int e = {me}; e < {count}; e += {threads})"):
            inner = 1
            conditions, values = [], {}
            for name, extent in zip(reversed(staged.dims), reversed(staged.extents), strict=True):
                writer.line(f"const int l_{name} = e / {inner} % {extent};")
                conditions.append(f"b_{name} + l_{name} < {self._nest.extents[name]}")
                values[name] = f"(b_{name} + l_{name})"
                inner *= extent
            widths = [*staged.extents[1:-1], staged.row] if len(staged.dims) > 1 else []
            target = ""
            for position, name in enumerate(staged.dims):
                target = (
                    f"l_{name}" if not target else f"({target}) * {widths[position - 1]} + l_{name}"
                )
            terms = []
            for name, step in staged.element.offset.coefficients:
                where = values.get(name, name if name.startswith("r") else f"b_{name}")
                terms.append(f"{step} * {where}")
            terms.append(str(staged.element.offset.constant))
            tensor = self._context.tensors[staged.element.tensor]
            writer.line(
                f"s{place}[{target}] = {' && '.join(conditions)} "
                f"? {tensor}[{' + '.join(terms)}] : 0;"
            )

    def _declare_shared(self) -> None:
        for place, staged in enumerate(self._mapping.staged):
            kind = c_type(staged.element.type)
            self._writer.line(f"__shared__ {kind} s{place}[{staged.num_elements}];")
            self._shared_bytes += staged.num_elements * staged.element.type.itemsize
        if self._mapping.reduced:
            for number, update in enumerate(self._nest.updates):
                kind = c_type(update.type)
                self._writer.line(f"__shared__ {kind} r{number}[{self._mapping.block[0]}];")
                self._shared_bytes += self._mapping.block[0] * update.type.itemsize


def _power_below(width: int) -> int:
    power = 1
    while power * 2 < width:
        power *= 2
    return power if width > 1 else 0
