"""Lists of names written as plain text, many per line, for easy review."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the set of whitespace-separated words in `text`.

    >>> sorted(words("relu  abs"))
    ['abs', 'relu']
    """
    return frozenset(text.split())
