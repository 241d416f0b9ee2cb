"""Lists of names written as text, many to a line, so that a person can review them."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the set of the words in `text`, which are separated by white space.

    >>> sorted(words("relu  abs"))
    ['abs', 'relu']
    """
    return frozenset(text.split())
