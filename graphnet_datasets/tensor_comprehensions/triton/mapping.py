"""Mapping of a nest to the programs and tiles of Triton kernels."""

from __future__ import annotations

import dataclasses
import math

from ..codegen.elements import Dim, Nest, elements_of
from ..options import Options
from .contraction import Contraction, contraction_of
from .frames import Axis

NUM_PROGRAMS = 132
"""Programs that use a whole GPU: the multiprocessors of an H100 or H200."""
MAX_PROGRAMS = 2**31 - 1
_TILE = 2048
"""Elements of a reduction's tile; more do not fit in registers next to several accumulators."""


@dataclasses.dataclass(frozen=True, slots=True)
class TritonMapping:
    """Mapping of a nest.

    Attributes:
        grid: dimensions with one value per program.
        axes: axes of the tile of points.
        terms: axis of the reductions; None for a pointwise nest.
        split: number of programs that share the terms of a tile; their partial results are
            combined by a second kernel.
        contraction: the factors, if the nest is a product; `axes` are then rows and columns.
    """

    grid: tuple[Dim, ...]
    axes: tuple[Axis, ...]
    terms: Axis | None
    split: int
    num_warps: int
    num_stages: int
    contraction: Contraction | None = None

    @property
    def num_tiles(self) -> int:
        """Number of tiles of points."""
        return math.prod(dim.extent for dim in self.grid) * math.prod(
            axis.num_tiles for axis in self.axes
        )

    @property
    def terms_per_program(self) -> int:
        """Number of terms of a program, a multiple of the tile."""
        if self.terms is None:
            return 0
        return -(-self.terms.num_tiles // self.split) * self.terms.block


def map_nest(nest: Nest, options: Options) -> TritonMapping:
    """Map a nest: a product to tensor cores, other reductions and assignments to vectors."""
    contraction = contraction_of(nest)
    if contraction is not None:
        return _product(nest, contraction, options)
    return _reduction(nest, options) if nest.updates else _pointwise(nest.dims, nest, options)


def power_of_two(value: int) -> int:
    """Return the smallest power of two that is not smaller.

    >>> [power_of_two(value) for value in (0, 1, 5, 64)]
    [1, 1, 8, 64]
    """
    return 1 << max(0, value - 1).bit_length()


def _pointwise(dims: tuple[Dim, ...], nest: Nest, options: Options) -> TritonMapping:
    triton = options.triton
    total = math.prod(dim.extent for dim in dims)
    warps = triton.num_warps or 4
    default = min(1024, max(128, power_of_two(total // (2 * NUM_PROGRAMS))))
    size = min(triton.pointwise or default, power_of_two(total))
    other = _transposed_dim(dims, nest)
    if other is None:
        return TritonMapping((), (Axis("x", dims, size),), None, 1, warps, 1)
    side = min(32, power_of_two(dims[-1].extent))
    outer = Axis("y", (other,), min(power_of_two(other.extent), max(1, size // side)))
    grid = tuple(dim for dim in dims[:-1] if dim != other)
    return TritonMapping(grid, (outer, Axis("x", dims[-1:], side)), None, 1, warps, 1)


def _transposed_dim(dims: tuple[Dim, ...], nest: Nest) -> Dim | None:
    """Return a dimension along which a read is contiguous, other than the innermost one."""
    if len(dims) < 2:
        return None
    for value in nest.expressions():
        for element in elements_of(value):
            if element.gathers or abs(element.offset.coefficient(dims[-1].name)) == 1:
                continue
            for dim in dims[:-1]:
                if abs(element.offset.coefficient(dim.name)) == 1 and dim.extent >= 8:
                    return dim
    return None


def _reduction(nest: Nest, options: Options) -> TritonMapping:
    triton = options.triton
    points = math.prod(dim.extent for dim in nest.dims)
    num_terms = math.prod(dim.extent for dim in nest.reductions)
    if triton.reduction is not None:
        points_block, terms_block = triton.reduction
    elif _is_contiguous_along_terms(nest):
        terms_block = min(_TILE, power_of_two(num_terms))
        points_block = max(1, min(16, 1024 // terms_block))
    else:
        # Programs read rows of points, one term after the other, if there are enough points.
        points_block = min(128, max(32, power_of_two(points // (2 * NUM_PROGRAMS))))
        terms_block = 1
        if num_terms >= 16 and points < 128 * NUM_PROGRAMS:
            terms_block = min(power_of_two(num_terms), _TILE // points_block)
    points_block = min(points_block, power_of_two(points))
    terms_block = min(terms_block, power_of_two(num_terms))
    points_axis = Axis("x", nest.dims, points_block)
    terms = Axis("r", nest.reductions, terms_block)
    warps = triton.num_warps or min(8, max(1, points_block * terms_block // 256))
    split = _split(points_axis.num_tiles, terms.num_tiles, 8, options)
    return TritonMapping((), (points_axis,), terms, split, warps, triton.num_stages or 2)


def _is_contiguous_along_terms(nest: Nest) -> bool:
    """Return whether terms are read contiguously along the innermost reduction only."""
    inner, last = nest.reductions[-1], nest.dims[-1].name if nest.dims else ""
    terms = {dim.name for dim in nest.reductions}
    reads = [
        element.offset
        for update in nest.updates
        for element in elements_of(update.value)
        if terms & set(element.offset.names)
    ]
    along = [offset for offset in reads if offset.coefficient(inner.name) == 1]
    across = [offset for offset in reads if last and offset.coefficient(last) == 1]
    return inner.extent >= 16 and bool(along) and not across


def _product(nest: Nest, contraction: Contraction, options: Options) -> TritonMapping:
    triton = options.triton
    num_terms = math.prod(dim.extent for dim in nest.reductions)
    rows, columns = (
        math.prod(dim.extent for dim in dims) for dims in (contraction.rows, contraction.columns)
    )
    batch = math.prod(dim.extent for dim in contraction.batch)
    if triton.product is not None:
        sizes = triton.product
    else:
        largest = (128, 128, 64) if contraction.is_narrow else (64, 64, 32)
        sizes = _fitting(largest, rows, columns, batch, num_terms)
    blocks = [
        max(16, min(size, power_of_two(extent)))
        for size, extent in zip(sizes, (rows, columns, num_terms), strict=True)
    ]
    axes = (Axis("m", contraction.rows, blocks[0]), Axis("n", contraction.columns, blocks[1]))
    terms = Axis("k", nest.reductions, blocks[2])
    warps = triton.num_warps or (8 if blocks[0] * blocks[1] >= 128 * 128 else 4)
    tiles = batch * axes[0].num_tiles * axes[1].num_tiles
    split = _split(tiles, terms.num_tiles, 4, options)
    stages = triton.num_stages or 3
    return TritonMapping(contraction.batch, axes, terms, split, warps, stages, contraction)


def _fitting(
    largest: tuple[int, int, int], rows: int, columns: int, batch: int, num_terms: int
) -> tuple[int, int, int]:
    """Halve the larger side of a tile until there is a tile for each multiprocessor."""
    height, width = (
        min(size, max(16, power_of_two(extent)))
        for size, extent in zip(largest, (rows, columns), strict=False)
    )
    while -(-rows // height) * -(-columns // width) * batch < NUM_PROGRAMS and (
        height * width > 32 * 32
    ):
        if height >= width:
            height //= 2
        else:
            width //= 2
    return height, width, min(largest[2], max(16, power_of_two(num_terms)))


def _split(num_tiles: int, num_steps: int, least_steps: int, options: Options) -> int:
    """Return the number of programs per tile: more than one if there are too few tiles."""
    split = options.triton.split
    if split is None:
        split = 1
        while (
            num_tiles
            and 2 * split * num_tiles <= 2 * NUM_PROGRAMS
            and (num_steps >= 2 * split * least_steps)
        ):
            split *= 2
    return max(1, min(split, num_steps))
