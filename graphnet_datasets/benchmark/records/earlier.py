"""Matching of requested runs with the records in a directory.

A run is done if its sample, compiler, compiler source, options, settings and environment match a
record. A record that matches the request but differs in the machine, a version or the source is
reported with its differences. The record stays and the run is repeated.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

from ...json_text import parse_json
from ...terminal import first_few

ASKED_FOR = ("sample_id", "compiler", "compiler_options", "device", "settings")
"""Columns that define the request; another request leads to other runs."""
FOUND = ("compiler_version", "compiler_source", "sample_digest", "environment")
"""Columns that describe the conditions under which a run happened."""
_MOST_NAMED = 6
_MOST_LENGTH = 60


def describe_done(num_done: int, num_runs: int) -> str:
    """Describe how many of the runs are already done; "" if no run is done.

    >>> describe_done(3, 3)
    'All runs (3) are already done. Choose another `out` to repeat them.'
    >>> describe_done(1, 3)
    '1 of 3 runs already done; running the rest.'
    """
    if not num_done:
        return ""
    if num_done == num_runs:
        return f"All runs ({num_runs}) are already done. Choose another `out` to repeat them."
    return f"{num_done} of {num_runs} runs already done; running the rest."


def describe_others(
    pending: Iterable[Mapping[str, Any]], records: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Describe how finished runs differ from pending runs that match except for their environment.

    Both have the columns `ASKED_FOR` and `FOUND`. Of several matching records the last one, which
    is the newest, counts. Returns a sentence per set of differences, the most frequent first.
    """
    newest = {_asked_for(record): record for record in records}
    counts: collections.Counter[tuple[str, ...]] = collections.Counter()
    for run in pending:
        record = newest.get(_asked_for(run))
        if record is not None and (changes := find_differences(record, run)):
            counts[tuple(changes)] += 1
    sentences = []
    for differences, count in counts.most_common():
        named = first_few(differences, _MOST_NAMED)
        runs = "1 finished run differs" if count == 1 else f"{count} finished runs differ"
        sentences.append(
            f"{runs} from this request in {named}. The samples run again, and both records stay."
        )
    return sentences


def find_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two runs beyond the request, by name, with both values.

    >>> one, other = ({"environment": f'{{"python": "{v}"}}'} for v in ("3.11", "3.12"))
    >>> find_differences(one, other)
    ['`environment.python` (3.11, now 3.12)']
    """
    left, right = _flat(before), _flat(now)
    return [
        f"`{name}` ({_short(left.get(name))}, now {_short(right.get(name))})"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


def _asked_for(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ASKED_FOR)


def _flat(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known columns of `FOUND`, with the environment split into its fields."""
    flat = {name: run.get(name) for name in FOUND if name != "environment"}
    # Older records lack the source and the sample.
    flat = {name: value for name, value in flat.items() if value is not None}
    pending: list[tuple[str, Any]] = [
        ("environment", parse_json(run.get("environment") or "{}", {}))
    ]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{name}.{key}", item) for key, item in value.items()]
        else:
            flat[name] = value
    return flat


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _MOST_LENGTH else f"{text[: _MOST_LENGTH - 1]}…"
