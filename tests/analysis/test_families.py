"""Collapsing repeats in sequences of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.analysis.families import collapse_repeats

WORDS = st.lists(st.sampled_from("abc"), max_size=40)


@pytest.mark.parametrize(
    ("names", "collapsed"),
    [
        ("", ""),
        ("a", "a"),
        ("aaaa", "a"),
        ("abab", "ab"),
        ("xababaz", "xabaz"),
        ("aabaab", "ab"),
        ("abcabcab", "abcab"),
        ("embedabcabcabchead", "embedabchead"),
        ("abcd" * 50 + "x", "abcdx"),
    ],
)
def test_a_block_that_follows_itself_counts_once(names: str, collapsed: str) -> None:
    assert collapse_repeats(names) == list(collapsed)


def has_square(names: list[str]) -> bool:
    return any(
        names[start : start + length] == names[start + length : start + 2 * length]
        for length in range(1, len(names) // 2 + 1)
        for start in range(len(names) - 2 * length + 1)
    )


@given(WORDS)
def test_nothing_that_is_left_follows_itself(names: list[str]) -> None:
    collapsed = collapse_repeats(names)
    assert not has_square(collapsed)
    assert collapse_repeats(collapsed) == collapsed
    assert has_square(names) or collapsed == names


@given(WORDS, st.lists(st.sampled_from("abc"), min_size=1, max_size=8), WORDS)
def test_the_number_of_repeats_does_not_count(
    head: list[str], block: list[str], tail: list[str]
) -> None:
    twice, many = ([*head, *block * count, *tail] for count in (2, 7))
    assert collapse_repeats(twice) == collapse_repeats(many)
