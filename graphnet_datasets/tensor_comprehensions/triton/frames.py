"""Tiles of Triton code: axes, arrangements of axes, and lines of code."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence

from ..codegen.elements import Dim


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A value: its code, and the axes along which it varies; a scalar has no axes."""

    code: str
    axes: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a tile: dimensions of a nest as one dimension, outermost first.

    `block` is the extent of the tile, a power of two. An axis of `block` 1 without dimensions gives
    scalars the shape that a reduction needs.
    """

    name: str
    dims: tuple[Dim, ...]
    block: int

    @property
    def extent(self) -> int:
        """Number of points along the axis."""
        return math.prod(dim.extent for dim in self.dims)

    @property
    def num_tiles(self) -> int:
        """Number of tiles along the axis; the last may be partial."""
        return -(-self.extent // self.block)


class Lines:
    """Indented lines of Python, with fresh names.

    >>> lines = Lines()
    >>> with lines.block("for k in range(0, 8):"):
    ...     lines.assign("x", "k + 1")
    'x1'
    >>> print(lines.text, end="")
    for k in range(0, 8):
        x1 = k + 1
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0

    def line(self, text: str) -> None:
        """Append a line."""
        self._lines.append("    " * self._depth + text)

    def assign(self, prefix: str, code: str) -> str:
        """Assign a value to a fresh name, unless it has a name, and return the name."""
        if code.isidentifier():
            return code
        self._count += 1
        name = f"{prefix}{self._count}"
        self.line(f"{name} = {code}")
        return name

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines written in this context below `head`; without a head, do nothing."""
        if head:
            self.line(head)
            self._depth += 1
        yield
        self._depth -= bool(head)

    @property
    def text(self) -> str:
        """All lines so far."""
        return "".join(f"{line}\n" for line in self._lines)


class Frame:
    """An arrangement of axes as dimensions of blocks, with values of the nest's dimensions.

    A product needs three arrangements of its axes: rows by terms, terms by columns, and rows by
    columns.

    Attributes:
        order: names of the axes in the order of the dimensions of blocks.
        values: values of the nest's dimensions.
        masks: for each axis with a partial tile, the condition that a position is in range.
    """

    def __init__(self, order: Sequence[Axis], lines: Lines, scalars: dict[str, Piece]) -> None:
        self.axes = {axis.name: axis for axis in order}
        self.order = tuple(self.axes)
        self.values = dict(scalars)
        self.masks: dict[str, str] = {}
        self._lines = lines

    @property
    def shape(self) -> str:
        """Shape of blocks as Triton code."""
        return f"[{', '.join(str(axis.block) for axis in self.axes.values())}]"

    def place(self, axis: Axis, position: str, *, is_ragged: bool) -> str:
        """Define the dimensions of an axis from the one-dimensional block of its positions.

        Returns the code of the positions in this arrangement.
        """
        if len(self.order) > 1:
            subscript = ", ".join(":" if name == axis.name else "None" for name in self.order)
            position = self._lines.assign(axis.name, f"{position}[{subscript}]")
        axes = frozenset({axis.name})
        inner = 1
        is_wide = axis.extent + axis.block >= 2**31
        for place, dim in reversed(list(enumerate(axis.dims))):
            code = position if inner == 1 else f"{position} // {inner}"
            if place:
                code = f"{code} % {dim.extent}"
            if is_wide:
                code = f"({code}).to(tl.int32)"
            name = self._lines.assign(f"{dim.name}_", code)
            self.values[dim.name] = Piece(name, axes)
            inner *= dim.extent
        if is_ragged:
            mask = self._lines.assign(f"in_{axis.name}", f"{position} < {axis.extent}")
            self.masks[axis.name] = mask
        return position

    def mask(self, axes: frozenset[str]) -> list[Piece]:
        """Return the conditions that positions along the given axes are in range."""
        return [
            Piece(self.masks[name], frozenset({name}))
            for name in self.order
            if name in axes and name in self.masks
        ]


def conjunction(conditions: Sequence[Piece]) -> Piece | None:
    """Return the conjunction of conditions, or None for no conditions."""
    if not conditions:
        return None
    code = " & ".join(condition.code for condition in conditions)
    axes = frozenset().union(*(condition.axes for condition in conditions))
    return Piece(f"({code})" if len(conditions) > 1 else code, axes)
