"""The greedy choice of samples that cover most."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import RunError
from graphnet_datasets.subsets import KINDS, cover

TARGETS = [f"op_{letter}" for letter in "abcdefgh"]


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        {
            "id": f"sample-{place}",
            "framework": "torch",
            "num_ops": draw(st.integers(1, 3)),
            "family": draw(st.sampled_from(["x", "y", "z", None])),
            "ops": [{"target": each} for each in draw(st.sets(st.sampled_from(TARGETS)))],
        }
        for place in range(draw(st.integers(1, 12)))
    ]


def things(row: dict[str, Any]) -> tuple[set[str], set[str]]:
    return {op["target"] for op in row["ops"]}, {row["family"]} - {None}


def plain_greedy(rows: list[dict[str, Any]], count: int) -> tuple[str, ...]:
    """Look at every row in every step, as the definition says."""
    sizes = [max(len(set().union(*(things(row)[kind] for row in rows))), 1) for kind in (0, 1)]
    covered: tuple[set[str], set[str]] = (set(), set())
    left = sorted(rows, key=lambda row: (row["num_ops"], row["id"]))
    chosen = []
    while left and len(chosen) < count:

        def adds(row: dict[str, Any]) -> float:
            gains = (
                len(own - known) / size / 2
                for own, known, size in zip(things(row), covered, sizes, strict=True)
            )
            return round(sum(gains), 12)

        best = max(left, key=adds)
        left.remove(best)
        chosen.append(best["id"])
        for own, known in zip(things(best), covered, strict=True):
            known |= own
    return tuple(chosen)


@hypothesis.given(tables(), st.integers(1, 12), st.randoms(use_true_random=False))
def test_the_lazy_choice_is_the_plain_one_in_any_order(
    rows: list[dict[str, Any]], count: int, order: random.Random
) -> None:
    expected = plain_greedy(rows, count)
    order.shuffle(rows)
    found = cover(rows, count, ("operators", "families"))
    assert found.ids == expected
    assert len(found.ids) == min(count, len(rows))
    for share in found.shares.values():
        assert list(share) == sorted(share) and len(share) == len(found.ids)
        assert all(0 <= each <= 1 for each in share)


@hypothesis.given(tables())
def test_all_samples_cover_everything(rows: list[dict[str, Any]]) -> None:
    found = cover(rows, len(rows), ("operators", "families"))
    assert all(share[-1] == 1.0 for share in found.shares.values())


@pytest.mark.slow
def test_every_kind_can_be_covered_on_embedded_graphs() -> None:
    rows = list(load_dataset("graphnet", "audio", split="all"))
    found = cover(rows, 5, tuple(KINDS))
    assert set(found.shares) == set(KINDS) and all(found.sizes.values())
    assert found.shares["tasks"][0] == 1.0  # they are all of one task
    assert found.sizes["shapes"] > found.sizes["operators"]
    assert "5 of" in str(found) and "families" in str(found)


def test_invalid_kinds_and_counts_are_refused() -> None:
    with pytest.raises(RunError, match=r"Unknown kind `operator`.* Did you mean `operators`"):
        cover([], 1, ("operator",))
    with pytest.raises(RunError, match="`count` must be at least 1, got 0"):
        cover([], 0)
    assert cover([], 3).ids == ()
