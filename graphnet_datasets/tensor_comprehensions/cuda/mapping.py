"""Mapping of a nest to a GPU: tiles, blocks, threads and shared memory."""

from __future__ import annotations

import dataclasses
import math

from ..codegen.elements import Element, Nest, elements_of
from ..options import Options

DEFAULT_TILE = (32, 32, 32)
MAX_SHARED_BYTES = 48 * 1024
"""Shared memory available to a kernel on every device; block reductions use no copies."""
_MIN_REDUCTION_PER_THREAD = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Staged:
    """An input whose tile is copied to shared memory.

    Attributes:
        dims: dimensions of the copy, outermost (largest stride) first.
        extents: size of the tile along each dimension.
        row: padded extent of the last dimension; odd, so that columns fall into different banks.
    """

    element: Element
    dims: tuple[str, ...]
    extents: tuple[int, ...]
    row: int

    @property
    def num_elements(self) -> int:
        """Number of elements of the copy, including padding."""
        return math.prod(self.extents[:-1]) * self.row


@dataclasses.dataclass(frozen=True, slots=True)
class Mapping:
    """Mapping of a nest.

    Attributes:
        tiles: tile size of each dimension.
        block_dims: dimensions whose tiles are distributed over blocks, x first.
        thread_dims: dimensions whose points are distributed over threads, x first.
        grid, block: extents of the launch, reduced to the actual amount of work.
        reduced: the reduction whose terms the threads of a block share, or "".
        term_tile: terms of the innermost reduction between two copies to shared memory.
        staged: inputs that are copied.
    """

    tiles: dict[str, int]
    block_dims: tuple[str, ...]
    thread_dims: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    reduced: str
    term_tile: int
    staged: tuple[Staged, ...]

    def per_thread(self, dim: str) -> int:
        """Return the largest number of points of a tile that a thread computes along a
        dimension.
        """
        if dim in self.thread_dims:
            return -(-self.tiles[dim] // self.block[self.thread_dims.index(dim)])
        return self.tiles[dim]


def map_nest(nest: Nest, options: Options) -> Mapping:
    """Map a nest, with threads from the innermost dimension outwards.

    Tiles are `options.tile` along the outermost dimensions, and whole dimensions beyond that.
    """
    cuda, sizes = options.cuda, DEFAULT_TILE if options.tile is None else options.tile
    names = [dim.name for dim in nest.dims]
    extents = nest.extents
    reduced = _reduced(nest, options)
    free = [name for name in names if name not in nest.serial]
    thread_dims = () if reduced else tuple(reversed(free))[: len(cuda.threads)]
    tiles = {}
    for place, name in enumerate(names):
        tile = sizes[place] if place < len(sizes) else 0
        if reduced or (not tile and name not in thread_dims):
            tile = 1
        tiles[name] = min(extents[name], tile or extents[name])
    # A thread keeps its accumulators in registers: at most 64 of them.
    for name in reversed(thread_dims):
        width = cuda.threads[thread_dims.index(name)]
        while _sums(tiles, thread_dims, cuda.threads) > 64 and tiles[name] > width:
            tiles[name] = max(width, tiles[name] // 2)
    for name in names:
        if name not in thread_dims:
            tiles[name] = 1
    block = [1, 1, 1]
    if reduced:
        block[0] = min(cuda.threads[0], extents[reduced])
    for place, name in enumerate(thread_dims):
        block[place] = min(cuda.threads[place], tiles[name])
    block_dims = tuple(reversed(free[:3]))
    grid = [1, 1, 1]
    for place, name in enumerate(block_dims):
        most = cuda.blocks[place] if place < len(cuda.blocks) else 65535
        grid[place] = min(most, -(-extents[name] // tiles[name]))
    inner = nest.reductions[-1].extent if nest.reductions else 1
    term_size = sizes[len(names)] if len(sizes) > len(names) else 32
    term_tile = min(inner, term_size or 32)
    mapping = Mapping(
        tiles,
        block_dims,
        thread_dims,
        (grid[0], grid[1], grid[2]),
        (block[0], block[1], block[2]),
        reduced,
        term_tile,
        (),
    )
    if cuda.use_shared and not reduced and nest.reductions and nest.updates:
        mapping = dataclasses.replace(mapping, staged=_staged(nest, mapping, options))
    return mapping


def _sums(tiles: dict[str, int], thread_dims: tuple[str, ...], threads: tuple[int, ...]) -> int:
    return math.prod(
        -(-tiles[name] // min(threads[place], tiles[name]))
        for place, name in enumerate(thread_dims)
    )


def _reduced(nest: Nest, options: Options) -> str:
    """Return the reduction that threads share: only for sums, over contiguous terms."""
    if not nest.updates or any(update.operator != "+" for update in nest.updates):
        return ""
    inner = nest.reductions[-1]
    if inner.extent < _MIN_REDUCTION_PER_THREAD * options.cuda.threads[0]:
        return ""
    reads = [element for update in nest.updates for element in elements_of(update.value)]
    last = nest.dims[-1].name if nest.dims else ""
    is_contiguous = all(element.offset.coefficient(inner.name) in (0, 1) for element in reads)
    shares = any(not element.offset.coefficient(last) for element in reads) if last else False
    return inner.name if is_contiguous and not shares else ""


def _staged(nest: Nest, mapping: Mapping, options: Options) -> tuple[Staged, ...]:
    """Return the inputs to copy: reused by several threads, or not read in thread order."""
    limit = options.cuda.max_shared
    left = MAX_SHARED_BYTES if limit is None else min(limit, MAX_SHARED_BYTES)
    depth = options.cuda.shared_depth
    if depth == 0:
        return ()
    inner = nest.reductions[-1].name
    sizes = {**mapping.tiles, inner: mapping.term_tile}
    written = {statement.target.tensor for statement in (*nest.updates, *nest.epilogues)}
    copies: dict[Element, Staged] = {}
    for update in nest.updates:
        for element in elements_of(update.value):
            if (
                element.gathers
                or element.is_guarded
                or element.tensor in written
                or element in copies
            ):
                continue
            steps = sorted(
                ((abs(step), name) for name, step in element.offset.coefficients if name in sizes),
                reverse=True,
            )
            dims = tuple(name for _, name in steps if sizes[name] > 1)
            if inner not in dims or not _is_box(steps, sizes):
                continue
            is_reused = any(not element.offset.coefficient(name) for name in mapping.thread_dims)
            is_scattered = bool(mapping.thread_dims) and (
                element.offset.coefficient(mapping.thread_dims[0]) not in (0, 1)
            )
            if not (is_reused or is_scattered):
                continue
            extents = tuple(sizes[name] for name in dims)
            row = extents[-1] + (extents[-1] % 2 == 0)
            staged = Staged(element, dims, extents, row)
            num_bytes = staged.num_elements * element.type.itemsize
            if num_bytes <= left:
                copies[element] = staged
                left -= num_bytes
    return tuple(copies.values())


def _is_box(steps: list[tuple[int, str]], sizes: dict[str, int]) -> bool:
    reach = 0
    for step, name in reversed(steps):
        if step <= reach:
            return False
        reach += step * (sizes[name] - 1)
    return True
