"""Register tiles, the schedule shared by the templates of products and convolutions.

A block of `rows` by `columns` results stays in vector registers over the whole reduction. Columns
are vectorised and rows unrolled, and the epilogue (bias, activation, residual) is computed when a
tile is written. Modelled after Xing et al., "Bolt", MLSys 2022, whose templates are those of
CUTLASS; these are for CPUs.
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

    `reduction` is the length of the inner part of the split first reduction, or 0 for no split.
    `is_packed` copies the operand that is read along the columns into contiguous memory.
    """

    rows: int
    columns: int
    reduction: int = 0
    is_packed: bool = False

    @property
    def registers(self) -> int:
        """Vector registers for the tile, one row of columns and one broadcast element.

        >>> Tile(14, 32).registers
        31
        """
        vectors = -(-self.columns // VECTOR_LANES)
        return self.rows * vectors + vectors + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Anchor:
    """The compute block of a workload, and the positions of its row and column loops."""

    block: str
    rows: int
    columns: int
    packed_operand: int | None = None


def divisors(size: int, most: int) -> list[int]:
    """Return the divisors of `size` up to `most` in descending order.

    >>> divisors(12, 6)
    [6, 4, 3, 2, 1]
    """
    return [divisor for divisor in range(min(size, most), 0, -1) if size % divisor == 0]


def column_sizes(size: int) -> list[int]:
    """Return up to four tile widths: divisors of `size`, preferably multiples of the lanes.

    >>> column_sizes(64), column_sizes(10)
    ([64, 32, 16], [10, 5, 2])
    """
    fitting = divisors(size, 4 * VECTOR_LANES)
    whole = [width for width in fitting if width % VECTOR_LANES == 0]
    return (whole or [width for width in fitting if width > 1] or [1])[:4]


def tiles(
    rows: int, columns: int, reduction: int, *, may_pack: bool, most: int = MAX_CANDIDATES
) -> list[Tile]:
    """Return the tiles of an operator that fit into the registers, largest first.

    >>> fitting = tiles(64, 64, 1024, may_pack=True)
    >>> len(fitting) <= 40 and all(tile.registers <= 32 for tile in fitting)
    True
    """
    candidates = [
        Tile(height, width, length, is_packed)
        for width in column_sizes(columns)
        for height in divisors(rows, 16)
        for length in ([0, 256] if reduction > 256 and reduction % 256 == 0 else [0])
        for is_packed in ([False, True] if may_pack else [False])
    ]
    candidates = [tile for tile in candidates if tile.registers <= NUM_REGISTERS]
    candidates.sort(key=lambda tile: -tile.rows * tile.columns)
    return candidates[:most]


def schedule_tile(schedule: Any, anchor: Anchor, tile: Tile, num_threads: int) -> None:
    """Schedule a workload in place.

    Raises:
        TuningError: the template does not apply to the workload.
    """
    block = schedule.get_sblock(anchor.block)
    _inline_others(schedule, anchor.block)
    writer = schedule.cache_write(block, 0, "local")
    if len(consumers := list(schedule.get_consumers(writer))) == 1:
        schedule.reverse_compute_inline(consumers[0])
    loops = list(schedule.get_loops(block))
    kinds = [int(variable.iter_type) for variable in schedule.get(block).iter_vars]
    if len(kinds) != len(loops):
        raise TuningError(
            "The operator's loops do not match the iteration variables of its block. Use another "
            "tuner for this task."
        )
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == 0]
    reductions = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == 2]
    rows, columns = spatial[anchor.rows], spatial[anchor.columns]
    others = [loop for loop in spatial if loop not in (rows, columns)]
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
    for tiled_block in (block, writer):
        _make_vectors(schedule, tiled_block)
    # Last, since TVM cannot schedule the update block without its initialisation.
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
    """Inline the producers of the anchor, and merge its consumers into one block."""
    block = schedule.get_sblock(anchor)
    for producer in _all_producers(schedule, block):
        if not is_kept(schedule, producer):
            schedule.compute_inline(producer)
    while consumers := list(schedule.get_consumers(schedule.get_sblock(anchor))):
        if len(consumers) > 1:
            break  # several consumers remain separate passes
        following = list(schedule.get_consumers(consumers[0]))
        if not following:
            break
        schedule.compute_inline(consumers[0])


def is_kept(schedule: Any, block: Any) -> bool:
    """Return whether a producer stays a separate pass: inlined padding tests every element."""
    return "pad" in str(schedule.get(block).name_hint)


def _all_producers(schedule: Any, block: Any) -> Sequence[Any]:
    """Return all transitive producers of a block, the nearest last."""
    producers: list[Any] = []
    for producer in schedule.get_producers(block):
        producers = [*_all_producers(schedule, producer), *producers, producer]
    return producers
