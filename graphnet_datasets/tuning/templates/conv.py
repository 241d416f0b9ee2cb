"""The template of 2-D convolutions, channels first: tiles of channels by pixels of a row.

The columns of a tile are neighbouring pixels, read as vectors; its rows are output channels, whose
weights are broadcast. Padding the input remains a separate pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from .tiles import Anchor, Tile, tiles

FAMILIES = ("conv2d",)


def anchor_of(block: str, num_spatial: int) -> Anchor:
    """Return the tiled block of a convolution, whose loops are batch, channel, row and pixel.

    >>> anchor_of("conv2d_nchw", 4).columns
    3
    """
    return Anchor(block, 1, num_spatial - 1)


def candidates(spatial: Sequence[int], reductions: Sequence[int]) -> list[Tile]:
    """Return the tiles of a convolution for its loop extents, at most 40.

    >>> tiles = candidates([1, 64, 56, 56], [64, 3, 3])
    >>> tiles[0].rows * tiles[0].columns >= 128, len(tiles) <= 40
    (True, True)
    """
    del reductions
    return tiles(spatial[1], spatial[-1], 0, may_pack=False)
