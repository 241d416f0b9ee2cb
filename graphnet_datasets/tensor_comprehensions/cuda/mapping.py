"""What of a nest goes where on a GPU: tiles, blocks, threads, shared memory."""

from __future__ import annotations

import dataclasses
import math

from ..codegen.elements import Element, Nest, elements_of
from ..options import Options

DEFAULT_TILE = (32, 32, 32)
MAX_SHARED_BYTES = 48 * 1024
"""What a kernel may declare on every device. Kernels with copies have no block reduction."""
_MIN_REDUCTION_PER_THREAD = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Staged:
    """An input whose part for a tile is copied to shared memory.

    Attributes:
        dims: the dimensions it runs through, outermost (largest stride) first.
        extents: how many values of each a tile holds.
        row: the padded extent of the last, odd so that columns fall into different banks.
    """

    element: Element
    dims: tuple[str, ...]
    extents: tuple[int, ...]
    row: int

    @property
    def num_elements(self) -> int:
        """Elements of the copy, padding included."""
        return math.prod(self.extents[:-1]) * self.row


@dataclasses.dataclass(frozen=True, slots=True)
class Mapping:
    """How a nest is mapped.

    Attributes:
        tiles: for each dimension the size of its tile.
        block_dims: the dimensions whose tiles are shared out over blocks, x first.
        thread_dims: the dimensions whose points are shared out over threads, x first.
        grid, block: the extents of the launch, tightened to what there is to do.
        reduced: the reduction whose terms the threads of a block share, "" if none.
        term_tile: terms of the innermost reduction between two copies to shared memory.
        staged: the inputs that are copied.
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
        """Return how many points of a tile along a dimension a thread computes at most."""
        if dim in self.thread_dims:
            return -(-self.tiles[dim] // self.block[self.thread_dims.index(dim)])
        return self.tiles[dim]


def map_nest(nest: Nest, options: Options) -> Mapping:
    """Return the mapping of a nest: threads from the innermost dimension outwards.

    Tiles are `options.tile` along the outermost dimensions, whole dimensions where it has none.
    """
    cuda, sizes = options.cuda, DEFAULT_TILE if options.tile is None else options.tile
    names = [each.name for each in nest.dims]
    extents = nest.extents
    reduced = _reduced(nest, options)
    thread_dims = () if reduced else tuple(reversed(names))[: len(cuda.threads)]
    tiles = {}
    for place, name in enumerate(names):
        wanted = sizes[place] if place < len(sizes) else 0
        if reduced or (not wanted and name not in thread_dims):
            wanted = 1
        tiles[name] = min(extents[name], wanted or extents[name])
    # Registers hold a thread's sums: no more than 64 of them.
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
    block_dims = tuple(reversed(names))[:3] if len(names) <= 3 else tuple(reversed(names[:3]))
    grid = [1, 1, 1]
    for place, name in enumerate(block_dims):
        most = cuda.blocks[place] if place < len(cuda.blocks) else 65535
        grid[place] = min(most, -(-extents[name] // tiles[name]))
    inner = nest.reductions[-1].extent if nest.reductions else 1
    wanted = sizes[len(names)] if len(sizes) > len(names) else 32
    term_tile = min(inner, wanted or 32)
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
    """Return the reduction that threads share: of sums only, where its terms lie side by side."""
    if not nest.updates or any(each.operator != "+" for each in nest.updates):
        return ""
    inner = nest.reductions[-1]
    if inner.extent < _MIN_REDUCTION_PER_THREAD * options.cuda.threads[0]:
        return ""
    reads = [each for update in nest.updates for each in elements_of(update.value)]
    last = nest.dims[-1].name if nest.dims else ""
    is_contiguous = all(each.offset.coefficient(inner.name) in (0, 1) for each in reads)
    shares = any(not each.offset.coefficient(last) for each in reads) if last else False
    return inner.name if is_contiguous and not shares else ""


def _staged(nest: Nest, mapping: Mapping, options: Options) -> tuple[Staged, ...]:
    """Return the inputs to copy: read again by other threads, or not in the order of threads."""
    limit = options.cuda.max_shared
    left = MAX_SHARED_BYTES if limit is None else min(limit, MAX_SHARED_BYTES)
    depth = options.cuda.shared_depth
    if depth == 0:
        return ()
    inner = nest.reductions[-1].name
    sizes = {**mapping.tiles, inner: mapping.term_tile}
    written = {each.target.tensor for each in (*nest.updates, *nest.epilogues)}
    found: dict[Element, Staged] = {}
    for update in nest.updates:
        for each in elements_of(update.value):
            if each.gathers or each.is_guarded or each.tensor in written or each in found:
                continue
            steps = sorted(
                ((abs(step), name) for name, step in each.offset.coefficients if name in sizes),
                reverse=True,
            )
            dims = tuple(name for _, name in steps if sizes[name] > 1)
            if inner not in dims or not _is_box(steps, sizes):
                continue
            is_reused = any(not each.offset.coefficient(name) for name in mapping.thread_dims)
            is_scattered = bool(mapping.thread_dims) and (
                each.offset.coefficient(mapping.thread_dims[0]) not in (0, 1)
            )
            if not (is_reused or is_scattered):
                continue
            extents = tuple(sizes[name] for name in dims)
            row = extents[-1] + (extents[-1] % 2 == 0)
            staged = Staged(each, dims, extents, row)
            num_bytes = staged.num_elements * each.type.itemsize
            if num_bytes <= left:
                found[each] = staged
                left -= num_bytes
    return tuple(found.values())


def _is_box(steps: list[tuple[int, str]], sizes: dict[str, int]) -> bool:
    reach = 0
    for step, name in reversed(steps):
        if step <= reach:
            return False
        reach += step * (sizes[name] - 1)
    return True
