"""The template of matrix products and batched products, with fused epilogues."""

from __future__ import annotations

from collections.abc import Sequence

from .tiles import Anchor, Tile, tiles

FAMILIES = ("matmul", "batch_matmul")


def anchor_of(block: str, num_spatial: int) -> Anchor:
    """Return the tiled block of a product, whose rows and columns are its last two loops.

    >>> anchor_of("matmul", 3).rows, anchor_of("matmul", 3).columns
    (1, 2)
    """
    return Anchor(block, num_spatial - 2, num_spatial - 1, packed_operand=1)


def candidates(spatial: Sequence[int], reductions: Sequence[int]) -> list[Tile]:
    """Return the tiles of a product for its loop extents, at most 40.

    >>> len(candidates([64, 1024], [784])) <= 40
    True
    """
    return tiles(spatial[-2], spatial[-1], reductions[0], may_pack=True)
