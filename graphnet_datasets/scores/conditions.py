"""Conditions of measurement, and the differences among the records of a score.

A score over two machines or two sets of settings is a mixture. Some mixtures are intentional (a
cluster, a run resumed after a kernel update), but every mixture is reported.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ..json_text import parse_json

COLUMNS = (
    "compiler", "compiler_version", "compiler_source", "compiler_options", "baseline", "device",
    "weights", "input_mode", "seed", "cache_mode", "compile_cache", "launch_mode", "num_threads",
    "clock", "timed_in", "dataset",
)  # fmt: skip
"""Columns that contain conditions."""
JSON_COLUMNS = ("environment", "settings")
"""JSON columns whose parts are conditions."""

_MAX_VALUES = 3


def differing_conditions(table: pa.Table) -> dict[str, dict[str, int]]:
    """Return the conditions that vary among the records, with their values.

    Each value, as a string, has the number of records with this value, the most frequent first.
    Missing values count as equal to any value.

    >>> rows = [{"device": "cpu", "environment": '{"cpu": {"model": "' + name + '"}}'}
    ...     for name in "aab"]
    >>> differing_conditions(pa.Table.from_pylist(rows))
    {'environment cpu.model': {'a': 2, 'b': 1}}
    """
    return {name: values for name, values in conditions_of(table).items() if len(values) > 1}


def conditions_of(table: pa.Table) -> dict[str, dict[str, int]]:
    """Return all recorded conditions, with their values and counts.

    >>> conditions_of(pa.Table.from_pylist([{"device": "cuda:0"}, {"device": "cuda:1"}]))
    {'device': {'cuda': 2}}
    """
    column_names = frozenset(table.column_names)  # the property builds a new list on each access
    conditions: dict[str, Counter[str]] = {}
    for column in COLUMNS:
        if column in column_names:
            for text, count in _counts(table, column):
                conditions.setdefault(column, Counter())[_plain(column, text)] += count
    for column in JSON_COLUMNS:
        if column in column_names:
            for text, count in _counts(table, column):
                for name, value in leaves(parse_json(text, text)):
                    # Skip settings that have a column of their own.
                    if name not in COLUMNS:
                        conditions.setdefault(f"{column} {name}".strip(), Counter())[value] += count
    return {name: dict(counts.most_common()) for name, counts in conditions.items() if counts}


def different_between(first: pa.Table, second: pa.Table) -> dict[str, tuple[str, str]]:
    """Return the conditions with different values in the two tables, as strings.

    A condition recorded in only one table is skipped, except for parts of the environment or the
    settings (such as a package or a flag) that may exist in one table only.

    >>> a, b = (pa.Table.from_pylist([{"device": name}]) for name in ("cpu", "cuda"))
    >>> different_between(a, b)
    {'device': ('cpu', 'cuda')}
    """
    conditions = conditions_of(first), conditions_of(second)
    # A log records less of its environment than a run, so compare only roots that both contain.
    roots = [{name.partition(".")[0] for name in condition} for condition in conditions]
    differences = {}
    for name in dict.fromkeys((*conditions[0], *conditions[1])):
        values = [condition.get(name, {}) for condition in conditions]
        is_known_in_both = all(values) or (
            "." in name and all(name.partition(".")[0] in names for names in roots)
        )
        if is_known_in_both and values[0].keys() != values[1].keys():
            differences[name] = (say_values(values[0]), say_values(values[1]))
    return differences


def say_values(values: Mapping[str, int]) -> str:
    """Format values, with their counts if there are several.

    >>> say_values({"2.12": 3, "2.13": 1}), say_values({"cpu": 9}), say_values({})
    ('2.12 (3), 2.13 (1)', 'cpu', 'none')
    """
    if len(values) <= 1:
        return next(iter(values), "none")
    listed = [f"{value} ({count})" for value, count in values.items()]
    more = f", and {len(listed) - _MAX_VALUES} more" if len(listed) > _MAX_VALUES else ""
    return ", ".join(listed[:_MAX_VALUES]) + more


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the nonempty leaves of nested objects as strings, with their dotted names.

    >>> list(leaves({"cpu": {"model": "x"}, "num_cpus": 2}))
    [('cpu.model', 'x'), ('num_cpus', '2')]
    """
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{prefix}.{name}" if prefix else str(name))
    elif value not in (None, [], ""):
        yield prefix, value if isinstance(value, str) else json.dumps(value)


def _counts(table: pa.Table, column: str) -> Iterator[tuple[str, int]]:
    for item in table[column].value_counts().to_pylist():
        if item["values"] is not None:
            yield str(item["values"]), item["counts"]


def _plain(column: str, text: str) -> str:
    if column == "device":  # cuda:0 and cuda:1 of one machine are workers of one run
        return text.partition(":")[0]
    return "{}" if column == "compiler_options" and not text else text
