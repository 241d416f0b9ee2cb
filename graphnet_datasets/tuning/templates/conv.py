"""The template of convolutions in two dimensions with channels first: channels by pixels of a row.

The columns of a tile are neighbouring pixels, which are read as vectors; its rows are output
channels, of which each weight is broadcast. The padded input stays a pass of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from .tiles import Anchor, Tile, tiles

FAMILIES = ("conv2d",)


def anchor_of(block: str, num_spatial: int) -> Anchor:
    """Return how a convolution's block is tiled: its loops are batch, channel, row and pixel.

    >>> anchor_of("conv2d_nchw", 4).columns
    3
    """
    return Anchor(block, 1, num_spatial - 1)


def candidates(spatial: Sequence[int], reductions: Sequence[int]) -> list[Tile]:
    """Return the tiles of a convolution by its loops' lengths, at most 40.

    >>> found = candidates([1, 64, 56, 56], [64, 3, 3])
    >>> found[0].rows * found[0].columns >= 128, len(found) <= 40
    (True, True)
    """
    del reductions
    return tiles(spatial[1], spatial[-1], 0, may_pack=False)
