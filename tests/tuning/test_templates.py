"""Templates of products and convolutions: few candidates, each correct, none where none fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.tuning.templates import conv, gemm
from graphnet_datasets.tuning.templates.tiles import (
    MAX_CANDIDATES,
    NUM_REGISTERS,
    Tile,
    column_sizes,
    tiles,
)

SIZES = st.integers(1, 4096)


@given(SIZES, SIZES, SIZES, st.booleans())
def test_tiles_divide_the_loops_and_fit_into_registers(
    rows: int, columns: int, reduction: int, may_pack: bool
) -> None:
    found = tiles(rows, columns, reduction, may_pack=may_pack)
    assert 1 <= len(found) <= MAX_CANDIDATES and len(set(found)) == len(found)
    for each in found:
        assert rows % each.rows == 0 and columns % each.columns == 0
        assert each.registers <= NUM_REGISTERS
        assert each.reduction == 0 or reduction % each.reduction == 0
        assert may_pack or not each.is_packed


def test_whole_vectors_come_first() -> None:
    assert column_sizes(96) == [48, 32, 16] and column_sizes(7) == [7] and column_sizes(1) == [1]
    assert tiles(128, 128, 64, may_pack=False)[0].registers > 16
    assert Tile(4, 64).registers == 21


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (gemm.candidates([64, 1024], [784]), 24),
        (gemm.candidates([8, 12, 64, 64], [64]), 24),
        (conv.candidates([1, 64, 7, 7], [64, 3, 3]), 5),
    ],
)
def test_a_shape_has_tens_of_candidates(found: list[Tile], count: int) -> None:
    assert len(found) == count
