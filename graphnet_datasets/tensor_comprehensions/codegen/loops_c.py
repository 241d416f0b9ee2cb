"""Loops around the tiles of a nest, distributed over threads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

from .elements import Dim, Nest
from .lanes_c import LaneBody
from .packing_c import Packer, row_place
from .plans import Plan
from .tile_c import TileBody
from .writer import Context, Writer


def write_nest(nest: Nest, plan: Plan, context: Context, writer: Writer) -> None:
    """Write the code of a nest in its own block."""
    with writer.block(""):
        _Loops(nest, plan, context, writer).write()


@contextlib.contextmanager
def shared_loops(dims: tuple[Dim, ...], threads: int, writer: Writer) -> Iterator[None]:
    """Wrap the code written in this context in loops over `dims`, distributed over threads."""
    if not dims:
        yield
        return
    total = math.prod(dim.extent for dim in dims)
    if threads > 1:
        writer.line('_Pragma("omp parallel for num_threads(nt) schedule(static)")')
    with writer.block(f"for (long p = 0; p < {total}; ++p)"):
        inner = total
        for place, dim in enumerate(dims):
            inner //= dim.extent
            code = "p" if inner == 1 else f"p / {inner}"
            code = f"{code} % {dim.extent}" if place else code
            writer.line(f"const long {dim.name} = {code};")
        yield


class _Loops:
    def __init__(self, nest: Nest, plan: Plan, context: Context, writer: Writer) -> None:
        self._nest, self._plan, self._context, self._writer = nest, plan, context, writer
        self._extents = nest.extents
        lanes = context.machine.lanes(plan.real.itemsize) if plan.mode == "tile" else 1
        self._steps = {name: plan.step(name, lanes) for name in plan.order}
        self._packer = Packer(nest, plan, context, writer) if plan.packed else None
        self._kind = "double" if plan.real.bits == 64 else "float"

    def write(self) -> None:
        plan = self._plan
        if plan.packed is not None and plan.packed.is_first:
            self._pack_all()
        loops = list(plan.blocks) or [(name, self._steps[name]) for name in plan.order]
        parallel = loops[: plan.num_parallel]
        if not parallel:
            self._block_loops(list(plan.blocks))
            return
        counts = [math.ceil(self._extents[name] / size) for name, size in parallel]
        prefix = "b_" if plan.blocks else ""
        self._writer.line('_Pragma("omp parallel for num_threads(nt) schedule(static)")')
        with self._writer.block(f"for (long p = 0; p < {math.prod(counts)}; ++p)"):
            for place, (name, size) in enumerate(parallel):
                inner = math.prod(counts[place + 1 :])
                code = "p" if inner == 1 else f"p / {inner}"
                code = f"{code} % {counts[place]}" if place else code
                code = f"({code}) * {size}" if size > 1 else code
                self._writer.line(f"const long {prefix}{name} = {code};")
            self._block_loops(list(plan.blocks)[plan.num_parallel :])

    def _block_loops(self, blocks: list[tuple[str, int]]) -> None:
        """Write the sequential loops over blocks, and their contents."""
        if not blocks:
            self._descend(0, {})
            return
        name, size = blocks[0]
        head = f"for (long b_{name} = 0; b_{name} < {self._extents[name]}; b_{name} += {size})"
        with self._writer.block(head):
            self._block_loops(blocks[1:])

    def _descend(self, level: int, sizes: dict[str, int]) -> None:
        """Write the loops of the order from `level` on."""
        plan = self._plan
        if (
            plan.packed is not None
            and not plan.packed.is_first
            and level
            and plan.order[level - 1] == plan.vector
        ):
            self._panel(level, sizes)
            return
        self._loops(level, sizes, False)

    def _panel(self, level: int, sizes: dict[str, int]) -> None:
        """Pack a panel, one block of terms at a time, and write the loops that read it."""
        assert self._packer is not None  # noqa: S101 (only for packed plans)
        plan, writer = self._plan, self._writer
        outermost = self._nest.reductions[0]
        inner = math.prod(dim.extent for dim in self._nest.reductions[1:])
        rows = (plan.k_block or outermost.extent) * inner
        self._context.reserve(rows * self._packer.width * plan.real.itemsize)
        writer.line(f"{self._kind} *const q = ({self._kind} *)tc_buffer;")
        if not plan.k_block:
            self._packer.write(sizes[plan.vector], False)
            self._loops(level, sizes, False)
            return
        with writer.block(f"for (long kb = 0; kb < {outermost.extent}; kb += {plan.k_block})"):
            writer.line(
                f"const long ke = kb + {plan.k_block} < {outermost.extent} "
                f"? kb + {plan.k_block} : {outermost.extent};"
            )
            self._packer.write(sizes[plan.vector], True)
            self._loops(level, sizes, True)

    def _loops(self, level: int, sizes: dict[str, int], blocked: bool) -> None:
        plan, writer = self._plan, self._writer
        if level == len(plan.order):
            with writer.block(""):
                self._body(sizes, blocked)
            return
        name = plan.order[level]
        extent, step = self._extents[name], self._steps[name]
        whole, rest = extent // step * step, extent % step

        def inside(size: int) -> None:
            following = {**sizes, name: size}
            if blocked:
                self._loops(level + 1, following, True)
            else:
                self._descend(level + 1, following)

        block = dict(plan.blocks).get(name)
        if block:
            self._within_block(name, block, whole, rest, inside)
            return
        if level < plan.num_parallel and not plan.blocks:
            if not rest or not whole:
                inside(rest or step)
                return
            with writer.block(f"if ({name} < {whole})"):
                inside(step)
            with writer.block("else"):
                inside(rest)
            return
        if whole:
            if whole == step:
                with writer.block(""):
                    writer.line(f"const long {name} = 0;")
                    inside(step)
            else:
                increment = f"{name} += {step}" if step > 1 else f"++{name}"
                with writer.block(f"for (long {name} = 0; {name} < {whole}; {increment})"):
                    inside(step)
        if rest:
            with writer.block(""):
                writer.line(f"const long {name} = {whole};")
                inside(rest)

    def _within_block(
        self, name: str, block: int, whole: int, rest: int, inside: Callable[[int], None]
    ) -> None:
        """Write the loop over the tiles of a block; the last block includes the partial tile."""
        writer, step = self._writer, self._steps[name]
        writer.line(
            f"const long e_{name} = b_{name} + {block} < {whole} ? b_{name} + {block} : {whole};"
        )
        with writer.block(f"for (long {name} = b_{name}; {name} < e_{name}; {name} += {step})"):
            inside(step)
        if rest:
            with writer.block(f"if (b_{name} + {block} > {whole})"):
                writer.line(f"const long {name} = {whole};")
                inside(rest)

    def _body(self, sizes: dict[str, int], blocked: bool) -> None:
        if self._plan.mode == "lanes":
            LaneBody(self._nest, self._plan, self._context, self._writer).write(sizes)
            return
        rows = None
        if self._packer is not None:
            rows = row_place(self._nest, self._packer.width, blocked)
            if self._plan.packed is not None and self._plan.packed.is_first:
                steps = math.prod(dim.extent for dim in self._nest.reductions)
                from ..language.affine import Affine

                rows = rows + Affine.index(self._plan.vector) * steps
        TileBody(self._nest, self._plan, self._context, self._writer).write(sizes, rows, blocked)

    def _pack_all(self) -> None:
        """Pack all panels of the operand; panel `d` starts at `d` times the number of terms."""
        assert self._packer is not None  # noqa: S101 (only for packed plans)
        plan, writer = self._plan, self._writer
        name, extent = plan.vector, self._extents[plan.vector]
        steps = math.prod(dim.extent for dim in self._nest.reductions)
        width = self._packer.width
        self._context.reserve(math.ceil(extent / width) * width * steps * plan.real.itemsize)
        writer.line(f"{self._kind} *const q0 = ({self._kind} *)tc_buffer;")
        whole, rest = extent // width * width, extent % width
        for first, stop, size in ((0, whole, width), (whole, extent, rest)):
            if first == stop:
                continue
            with writer.block(f"for (long {name} = {first}; {name} < {stop}; {name} += {width})"):
                writer.line(f"{self._kind} *const q = q0 + {name} * {steps};")
                self._packer.write(size, False)
        writer.line(f"{self._kind} *const q = q0;")
