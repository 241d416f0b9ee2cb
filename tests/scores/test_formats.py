"""Bit patterns as numbers, against torch."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet_datasets.scores.formats import decode

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "dtype",
    ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"],
)
def test_every_pattern_of_float8_is_torchs_number(dtype: str) -> None:
    patterns = np.arange(256, dtype=np.uint8)
    expected = torch.from_numpy(patterns).view(getattr(torch, dtype)).to(torch.float32).numpy()
    np.testing.assert_array_equal(decode(patterns, dtype), expected)


def test_every_pattern_of_bfloat16_is_torchs_number() -> None:
    patterns = np.arange(2**16).astype(np.uint16)
    expected = torch.from_numpy(patterns).view(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(decode(patterns, "bfloat16"), expected)


def test_complex32_has_its_real_part_in_the_low_half() -> None:
    patterns = np.array([[0xBC003C00], [0x00000000]], np.uint32)
    assert decode(patterns, "complex32").tolist() == [[1 - 1j], [0j]]


def test_numpy_arrays_are_returned_unchanged() -> None:
    elements = np.arange(3, dtype=np.int64)
    assert decode(elements, "int64") is elements
