"""A tile of registers: the schedule that the templates of products and convolutions share.

A block of `rows` by `columns` results is kept in vector registers over the whole reduction; the
columns are vectors, the rows are unrolled, and what follows the operator (bias, activation,
residual) is computed when a tile is written. After Xing et al., "Bolt", MLSys 2022, whose templates
are CUTLASS's; these are for processors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...errors import TuningError

VECTOR_LANES = 16
"""float32 elements of a 512-bit register."""
NUM_REGISTERS = 32
MAX_CANDIDATES = 40


@dataclasses.dataclass(frozen=True, slots=True)
class Tile:
    """The parameters of one candidate.

    `reduction` is the length of the innermost part of the first reduction, 0 for all of it.
    `is_packed` copies the operand that is read along the columns next to each other.
    """

    rows: int
    columns: int
    reduction: int = 0
    is_packed: bool = False

    @property
    def registers(self) -> int:
        """Vector registers of the tile, of one row of columns and of one broadcast element.

        >>> Tile(14, 32).registers
        31
        """
        vectors = -(-self.columns // VECTOR_LANES)
        return self.rows * vectors + vectors + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Anchor:
    """The block of a workload that does the work, and which of its loops are rows and columns."""

    block: str
    rows: int
    columns: int
    packed_operand: int | None = None


def divisors(size: int, most: int) -> list[int]:
    """Return the divisors of `size` up to `most`, the greatest first.

    >>> divisors(12, 6)
    [6, 4, 3, 2, 1]
    """
    return [each for each in range(min(size, most), 0, -1) if size % each == 0]


def column_sizes(size: int) -> list[int]:
    """Return up to four widths of a tile: whole vectors where they divide `size`, else what does.

    >>> column_sizes(64), column_sizes(10)
    ([64, 32, 16], [10, 5, 2])
    """
    fitting = divisors(size, 4 * VECTOR_LANES)
    whole = [each for each in fitting if each % VECTOR_LANES == 0]
    return (whole or [each for each in fitting if each > 1] or [1])[:4]


def tiles(
    rows: int, columns: int, reduction: int, *, may_pack: bool, most: int = MAX_CANDIDATES
) -> list[Tile]:
    """Return the tiles of an operator that fit into the registers, the fullest first.

    >>> found = tiles(64, 64, 1024, may_pack=True)
    >>> len(found) <= 40 and all(each.registers <= 32 for each in found)
    True
    """
    found = [
        Tile(height, width, length, is_packed)
        for width in column_sizes(columns)
        for height in divisors(rows, 16)
        for length in ([0, 256] if reduction > 256 and reduction % 256 == 0 else [0])
        for is_packed in ([False, True] if may_pack else [False])
    ]
    found = [each for each in found if each.registers <= NUM_REGISTERS]
    found.sort(key=lambda each: -each.rows * each.columns)
    return found[:most]


def schedule_tile(schedule: Any, anchor: Anchor, tile: Tile, num_threads: int) -> None:
    """Schedule a workload in place.

    Raises:
        TuningError: the workload is not of the form that the template is for.
    """
    block = schedule.get_sblock(anchor.block)
    _inline_others(schedule, anchor.block)
    writer = schedule.cache_write(block, 0, "local")
    if len(consumers := list(schedule.get_consumers(writer))) == 1:
        schedule.reverse_compute_inline(consumers[0])
    loops = list(schedule.get_loops(block))
    kinds = [int(each.iter_type) for each in schedule.get(block).iter_vars]
    if len(kinds) != len(loops):
        raise TuningError("The loops of the operator are not those of its block.")
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == 0]
    reductions = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == 2]
    rows, columns = spatial[anchor.rows], spatial[anchor.columns]
    others = [each for each in spatial if each not in (rows, columns)]
    outer_rows, inner_rows = schedule.split(rows, [None, tile.rows])
    outer_columns, inner_columns = schedule.split(columns, [None, tile.columns])
    if tile.reduction:
        outer, inner = schedule.split(reductions[0], [None, tile.reduction])
        reductions = [outer, inner, *reductions[1:]]
    outside = [*others, outer_columns, outer_rows]
    schedule.reorder(*outside, *reductions, inner_rows, inner_columns)
    if tile.is_packed and anchor.packed_operand is not None:
        packed = schedule.cache_read(block, anchor.packed_operand, "global")
        schedule.compute_at(packed, outer_columns, preserve_unit_loops=True)
    schedule.reverse_compute_at(writer, outer_rows, preserve_unit_loops=True)
    if num_threads > 1:
        schedule.parallel(schedule.fuse(*outside[:-1]) if len(outside) > 2 else outside[0])
    for each in (block, writer):
        _make_vectors(schedule, each)
    # Only now: the half that sums has no start of its own, and TVM would refuse it.
    init = schedule.decompose_reduction(block, reductions[0])
    _make_vectors(schedule, init)


def _make_vectors(schedule: Any, block: Any) -> None:
    unrolled, vector = list(schedule.get_loops(block))[-2:]
    serial = 0
    if int(schedule.get(unrolled).kind) == serial:
        schedule.unroll(unrolled)
    if int(schedule.get(vector).kind) == serial:
        schedule.vectorize(vector)


def _inline_others(schedule: Any, anchor: str) -> None:
    """Inline what is computed before the anchor, and join what follows into one block."""
    block = schedule.get_sblock(anchor)
    for producer in _all_producers(schedule, block):
        if not is_kept(schedule, producer):
            schedule.compute_inline(producer)
    while consumers := list(schedule.get_consumers(schedule.get_sblock(anchor))):
        if len(consumers) > 1:
            break  # each of them stays a pass of its own
        following = list(schedule.get_consumers(consumers[0]))
        if not following:
            break
        schedule.compute_inline(consumers[0])


def is_kept(schedule: Any, block: Any) -> bool:
    """Tell whether a producer stays a pass of its own: padding, which would test every element."""
    return "pad" in str(schedule.get(block).name_hint)


def _all_producers(schedule: Any, block: Any) -> Sequence[Any]:
    """Return the blocks that a block reads from, the nearest last."""
    found: list[Any] = []
    for each in schedule.get_producers(block):
        found = [*_all_producers(schedule, each), *found, each]
    return found
