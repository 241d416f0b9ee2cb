"""Packing an operand: panels of whole vectors, one row for each step of the reductions."""

from __future__ import annotations

import math

from ..language.affine import Affine
from ..language.types import FLOAT32, FLOAT64
from .elements import Nest
from .plans import Plan
from .reading import affine_c
from .writer import Context, Writer


def row_place(nest: Nest, width: int, blocked: bool) -> Affine:
    """Return where the row of the current reduction step lies in a panel, in elements.

    The rows follow each other as the reductions run; the loop over a block starts at `kb`.
    """
    place, step = Affine(), width
    for dim in reversed(nest.reductions):
        place = place + Affine.index(dim.name) * step
        step *= dim.extent
    if blocked:
        inner = width * math.prod(each.extent for each in nest.reductions[1:])
        place = place - Affine.index("kb") * inner
    return place


class Packer:
    """Writes the code that packs one panel of a nest's packed operand."""

    def __init__(self, nest: Nest, plan: Plan, context: Context, writer: Writer) -> None:
        assert plan.packed is not None  # noqa: S101 (only such plans come here)
        self._nest, self._plan, self._writer = nest, plan, writer
        self._element = plan.packed.element
        self._lanes = context.machine.lanes(plan.real.itemsize)
        self._vector = "vd" if plan.real == FLOAT64 else "vf"
        self._kind = "double" if plan.real == FLOAT64 else "float"
        self._base = context.tensors[self._element.tensor]
        self.width = plan.num_vectors * self._lanes

    def write(self, size: int, blocked: bool, destination: str = "q") -> None:
        """Pack `size` values of the vector's dimension from its loop variable on.

        What is left of the last vector is filled with zeros: their products are not stored.
        """
        dims = self._nest.reductions
        inner = dims[-1]
        step = self._element.offset.coefficient(self._plan.vector)
        by = self._element.offset.coefficient(inner.name)
        needed = math.ceil(size / self._lanes) * self._lanes
        held = Affine(self._element.offset.coefficients, self._element.offset.constant)
        row = row_place(self._nest, self.width, blocked)
        blocks = []
        for place, dim in enumerate(dims[:-1]):
            start, stop = ("kb", "ke") if blocked and place == 0 else ("0", str(dim.extent))
            head = f"for (long {dim.name} = {start}; {dim.name} < {stop}; ++{dim.name})"
            blocks.append(self._writer.block(head))
            blocks[-1].__enter__()
        is_blocked_inner = blocked and len(dims) == 1
        start, stop = ("kb", "ke") if is_blocked_inner else ("0", str(inner.extent))
        if step != 1 and by == 1 and self._plan.real == FLOAT32:
            self._transposed(held, row, size, needed, start, stop)
        else:
            with self._writer.block(
                f"for (long {inner.name} = {start}; {inner.name} < {stop}; ++{inner.name})"
            ):
                self._row(held, row, size, needed, step, destination)
        for each in reversed(blocks):
            each.__exit__(None, None, None)

    def _row(
        self, held: Affine, row: Affine, size: int, needed: int, step: int, destination: str
    ) -> None:
        kind, vector = self._kind, self._vector
        source, target = self._base + " + " + affine_c(held), f"{destination} + {affine_c(row)}"
        self._writer.line(f"const {kind} *const s = {source};")
        self._writer.line(f"{kind} *const t = {target};")
        for start in range(0, needed, self._lanes):
            lanes = min(self._lanes, size - start)
            if step == 1:
                load = (
                    f"*(const {vector}u *)(s + {start})"
                    if lanes == self._lanes
                    else f"{vector}_load(s + {start}, {lanes})"
                )
            else:
                load = f"{vector}_strided(s + {start * step}, {step}, {lanes})"
            self._writer.line(f"*({vector} *)(t + {start}) = {load};")

    def _transposed(
        self, held: Affine, row: Affine, size: int, needed: int, start: str, stop: str
    ) -> None:
        """Transpose blocks of lanes by lanes in registers, and what is left one by one."""
        inner, lanes, writer = self._nest.reductions[-1].name, self._lanes, self._writer
        step = self._element.offset.coefficient(self._plan.vector)
        whole = size // lanes * lanes
        writer.line(f"long {inner} = {start};")
        with writer.block(f"for (; {inner} + {lanes} <= {stop}; {inner} += {lanes})"):
            writer.line(f"const float *const s = {self._base} + {affine_c(held)};")
            writer.line(f"float *const t = q + {affine_c(row)};")
            if whole:
                with writer.block(f"for (long l = 0; l < {whole}; l += {lanes})"):
                    writer.line(f"tc_transpose(s + l * {step}, {step}, t + l, {self.width});")
            if whole < needed:
                with writer.block(f"for (long j = 0; j < {lanes}; ++j)"):
                    self._loose(whole, size, needed, step, "j", f"j * {self.width}")
        with writer.block(f"for (; {inner} < {stop}; ++{inner})"):
            writer.line(f"const float *const s = {self._base} + {affine_c(held)};")
            writer.line(f"float *const t = q + {affine_c(row)};")
            self._loose(0, size, needed, step, "0", "0")

    def _loose(
        self, first: int, size: int, needed: int, step: int, source: str, target: str
    ) -> None:
        loop = f"for (long l = {first}; l < {size}; ++l)"
        self._writer.line(f"{loop} t[{target} + l] = s[l * {step} + {source}];")
        if size < needed:
            loop = f"for (long l = {size}; l < {needed}; ++l)"
            self._writer.line(f"{loop} t[{target} + l] = 0;")
