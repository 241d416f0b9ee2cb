"""Splits by family."""

from __future__ import annotations

import collections
import hashlib

from graphnet_datasets.analysis.splits import SPLITS, split_of


def test_eight_in_ten_families_are_for_training() -> None:
    families = [hashlib.sha256(bytes([k % 256, k // 256])).hexdigest()[:32] for k in range(10_000)]
    counts = collections.Counter(map(split_of, families))
    assert set(counts) == set(SPLITS)
    assert abs(counts["train"] - 8000) < 200
    assert abs(counts["validation"] - 1000) < 150
    assert abs(counts["test"] - 1000) < 150


def test_a_split_never_moves() -> None:
    # Tables are published with these: another answer would move graphs between train and test.
    assert [split_of(f"{k:032x}") for k in range(7)] == [
        "validation", "train", "test", "validation", "test", "train", "test",
    ]  # fmt: skip
