"""Kinds of warnings in run records, and their effect on scores.

A warning begins with its kind ("impossibly_fast: the candidate took …"); other warnings have the
kind "other".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

IMPOSSIBLE = "impossibly_fast"
"""The candidate was faster than its work allows, so it did not do the work."""
LESS_ACCURATE = "less_accurate_than_eager"
"""The candidate is farther from float64 than rounding in its dtype explains."""
OTHER = "other"

_KIND = re.compile(r"([a-z]+(?:_[a-z0-9]+)+\b|[a-z]+(?=:|\Z))")


def warning_kind(text: str) -> str:
    """Return the kind at the beginning of a warning.

    >>> warning_kind("impossibly_fast: 1 ms"), warning_kind("drifted: 1.4 of its time alone")
    ('impossibly_fast', 'drifted')
    >>> warning_kind("left 2 processes running")
    'other'
    """
    match = _KIND.match(text)
    return match[1] if match else OTHER


def kinds_of(warnings: Iterable[str] | None) -> frozenset[str]:
    """Return the kinds of the warnings of one record."""
    return frozenset(map(warning_kind, warnings)) if warnings else frozenset()


def warnings_of(table: pa.Table) -> list[Sequence[str]]:
    """Return the warnings of each record of a table."""
    column = table["warnings"]
    if column.null_count == len(column):
        return [()] * len(column)
    return [warnings or () for warnings in column.to_pylist()]


def is_impossible(warnings: Iterable[str] | None) -> bool:
    """Return whether a warning says that the record's time is too short for the work."""
    return IMPOSSIBLE in kinds_of(warnings)


def count_kinds(table: pa.Table) -> dict[str, int]:
    """Return the number of records with warnings of each kind, by name.

    >>> rows = [{"warnings": ["noisy: a", "noisy: b"]}, {"warnings": None}]
    >>> count_kinds(pa.Table.from_pylist(rows))
    {'noisy': 1}
    """
    some = filter(None, warnings_of(table))
    counts = Counter(kind for warnings in some for kind in kinds_of(warnings))
    return dict(sorted(counts.items()))


def sentence(counts: Mapping[str, int]) -> str:
    """Describe how many records have each kind of warning.

    >>> sentence({"less_accurate_than_eager": 3, "noisy": 1})
    'Warnings: 3 less_accurate_than_eager, 1 noisy'
    """
    return "Warnings: " + ", ".join(f"{count} {kind}" for kind, count in counts.items())


def first_of(kind: str, record: Mapping[str, Any]) -> str:
    """Return the first warning of a kind in a record, or ""."""
    return next((text for text in record["warnings"] or () if warning_kind(text) == kind), "")
