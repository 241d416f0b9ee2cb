"""Packing of an operand into panels of whole vectors, with a row per reduction step."""

from __future__ import annotations

import math

from ..language.affine import Affine
from ..language.types import FLOAT32, FLOAT64
from .elements import Nest
from .plans import Plan
from .reading import affine_c
from .writer import Context, Nesting, Writer


def row_place(nest: Nest, width: int, blocked: bool) -> Affine:
    """Return the offset in elements of the current reduction step's row in a panel.

    Rows are stored in the order of the reductions; the loop over a block starts at `kb`.
    """
    offset, step = Affine(), width
    for dim in reversed(nest.reductions):
        offset = offset + Affine.index(dim.name) * step
        step *= dim.extent
    if blocked:
        inner = width * math.prod(dim.extent for dim in nest.reductions[1:])
        offset = offset - Affine.index("kb") * inner
    return offset


class Packer:
    """Writes the code that packs one panel of an operand."""

    def __init__(self, nest: Nest, plan: Plan, context: Context, writer: Writer) -> None:
        assert plan.packed is not None  # noqa: S101 (the plan packs an operand)
        self._nest, self._plan, self._writer = nest, plan, writer
        self._element = plan.packed.element
        self._lanes = context.machine.lanes(plan.real.itemsize)
        self._vector = "vd" if plan.real == FLOAT64 else "vf"
        self._kind = "double" if plan.real == FLOAT64 else "float"
        self._base = context.tensors[self._element.tensor]
        self.width = plan.num_vectors * self._lanes

    def write(self, size: int, blocked: bool, destination: str = "q") -> None:
        """Pack `size` values of the vector dimension, starting at its loop variable.

        The rest of the last vector is filled with zeros; their products are not stored.
        """
        dims = self._nest.reductions
        step = self._element.offset.coefficient(self._plan.vector)
        by = self._element.offset.coefficient(dims[-1].name)
        padded_size = math.ceil(size / self._lanes) * self._lanes
        offset = Affine(self._element.offset.coefficients, self._element.offset.constant)
        row = row_place(self._nest, self.width, blocked)
        bounds = [
            ("kb", "ke") if blocked and place == 0 else ("0", str(dim.extent))
            for place, dim in enumerate(dims)
        ]
        heads = [
            f"for (long {dim.name} = {start}; {dim.name} < {stop}; ++{dim.name})"
            for dim, (start, stop) in zip(dims, bounds, strict=True)
        ]
        if step != 1 and by == 1 and self._plan.real == FLOAT32:
            with Nesting(heads[:-1], self._writer):
                self._transposed(offset, row, size, padded_size, *bounds[-1])
        else:
            with Nesting(heads, self._writer):
                self._row(offset, row, size, padded_size, step, destination)

    def _row(
        self, offset: Affine, row: Affine, size: int, padded_size: int, step: int, destination: str
    ) -> None:
        kind, vector = self._kind, self._vector
        source, target = self._base + " + " + affine_c(offset), f"{destination} + {affine_c(row)}"
        self._writer.line(f"const {kind} *const s = {source};")
        self._writer.line(f"{kind} *const t = {target};")
        for start in range(0, padded_size, self._lanes):
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
        self, offset: Affine, row: Affine, size: int, padded_size: int, start: str, stop: str
    ) -> None:
        """Transpose square blocks in registers, and copy the rest element by element."""
        inner, lanes, writer = self._nest.reductions[-1].name, self._lanes, self._writer
        step = self._element.offset.coefficient(self._plan.vector)
        whole = size // lanes * lanes
        writer.line(f"long {inner} = {start};")
        with writer.block(f"for (; {inner} + {lanes} <= {stop}; {inner} += {lanes})"):
            writer.line(f"const float *const s = {self._base} + {affine_c(offset)};")
            writer.line(f"float *const t = q + {affine_c(row)};")
            if whole:
                with writer.block(f"for (long l = 0; l < {whole}; l += {lanes})"):
                    writer.line(f"tc_transpose(s + l * {step}, {step}, t + l, {self.width});")
            if whole < padded_size:
                with writer.block(f"for (long j = 0; j < {lanes}; ++j)"):
                    self._loose(whole, size, padded_size, step, "j", f"j * {self.width}")
        with writer.block(f"for (; {inner} < {stop}; ++{inner})"):
            writer.line(f"const float *const s = {self._base} + {affine_c(offset)};")
            writer.line(f"float *const t = q + {affine_c(row)};")
            self._loose(0, size, padded_size, step, "0", "0")

    def _loose(
        self, first: int, size: int, padded_size: int, step: int, source: str, target: str
    ) -> None:
        loop = f"for (long l = {first}; l < {size}; ++l)"
        self._writer.line(f"{loop} t[{target} + l] = s[l * {step} + {source}];")
        if size < padded_size:
            loop = f"for (long l = {size}; l < {padded_size}; ++l)"
            self._writer.line(f"{loop} t[{target} + l] = 0;")
