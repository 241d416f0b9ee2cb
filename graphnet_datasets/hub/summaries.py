"""The description of a pull request that adds rows, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..schema import Table
from ..schema.tables import GRAPHS
from ..terminal import counted, printable_line
from ..version import __version__
from .gather import Place
from .results import Skipped

MAX_LISTED = 50
"""Maximum number of rows that are listed individually."""


def title_of(table: Table, num_added: int) -> str:
    """Return the title of a pull request.

    >>> title_of(GRAPHS, 3)
    'Add 3 graphs'
    """
    return f"Add {num_added} {table.rows}"


def summarise(
    table: Table,
    tables: Mapping[Place, pa.Table],
    files: Mapping[str, str],
    skipped: Sequence[Skipped],
) -> str:
    """Return the description of a pull request: added rows, files, checks and skipped rows.

    `tables` are the added rows by config and split; `files` are the new files with their SHA-256.
    Strings from rows are quoted, so that they cannot contain markup.
    """
    num_added = sum(rows.num_rows for rows in tables.values())
    lines = [
        f"# {title_of(table, num_added)}",
        "",
        f"Written by `graphnet submit` of graphnet-datasets {__version__}; "
        f"{counted(len(skipped), 'row')} left out.",
        "",
        *(_graphs(tables) if table is GRAPHS else _counts(table, tables)),
        "",
        "| file | SHA-256 |",
        "|---|---|",
        *(f"| {quoted(name)} | `{digest}` |" for name, digest in sorted(files.items())),
    ]
    if skipped:
        lines += ["", "## Left out", ""]
        lines += [f"- {quoted(item.id)}: {quoted(item.reason)}" for item in skipped[:MAX_LISTED]]
        if len(skipped) > MAX_LISTED:
            lines.append(f"- and {len(skipped) - MAX_LISTED:,} more")
    return "\n".join(lines) + "\n"


def quoted(text: object) -> str:
    """Quote an untrusted string as inline code in Markdown, on one line.

    >>> quoted("a|b`<img>"), quoted("x" * 400)[-3:]
    ("`a/b'<img>`", 'x…`')
    """
    line = printable_line(text).replace("`", "'").replace("|", "/")
    return f"`{line[:300]}{'…' if len(line) > 300 else ''}`"


def _graphs(tables: Mapping[Place, pa.Table]) -> Iterator[str]:
    yield "| config | split | graphs | families | operators | sources | licences |"
    yield "|---|---|---|---|---|---|---|"
    for (config, split), rows in tables.items():
        sizes = rows["num_ops"].to_pylist()
        yield (
            f"| {quoted(config)} | {quoted(split)} | {rows.num_rows:,} "
            f"| {len(set(rows['family'].to_pylist())):,} | {min(sizes):,} to {max(sizes):,} "
            f"| {_listed(rows, 'source')} | {_listed(rows, 'license')} |"
        )
    outcomes: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for rows in tables.values():
        for checks in rows["validation"].to_pylist():
            for result in checks or ():
                outcomes.setdefault(result["check"], Counter())[result["outcome"]] += 1
                if result["outcome"] == "skipped" and result["reason"]:
                    reasons[result["reason"]] += 1
    yield ""
    yield "| check | passed | skipped |"
    yield "|---|---|---|"
    for check, counts in outcomes.items():
        yield f"| {quoted(check)} | {counts['passed']:,} | {counts['skipped']:,} |"
    if reasons:
        yield ""
        yield "Skipped: " + "; ".join(
            f"{quoted(reason)} ({count:,})" for reason, count in reasons.most_common(5)
        )
    yield ""
    yield "| graph | operators | parameters |"
    yield "|---|---|---|"
    listed_rows = [
        row for rows in tables.values() for row in _columns(rows, ("id", "num_ops", "num_params"))
    ]
    for row in listed_rows[:MAX_LISTED]:
        yield f"| {quoted(row['id'])} | {row['num_ops']:,} | {row['num_params']:,} |"
    if len(listed_rows) > MAX_LISTED:
        yield f"| and {len(listed_rows) - MAX_LISTED:,} more | | |"


def _counts(table: Table, tables: Mapping[Place, pa.Table]) -> Iterator[str]:
    names = table.counted_by
    yield f"| {' | '.join([*names, 'rows'])} |"
    yield "|" + "---|" * (len(names) + 1)
    counts: Counter[tuple[Any, ...]] = Counter()
    for rows in tables.values():
        counts.update(tuple(row.values()) for row in _columns(rows, names))
    for values, count in sorted(counts.items(), key=lambda pair: tuple(map(str, pair[0]))):
        yield f"| {' | '.join(map(quoted, values))} | {count:,} |"


def _columns(rows: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    return rows.select(list(names)).to_pylist()


def _listed(rows: pa.Table, name: str) -> str:
    counts = Counter(value or "not stated" for value in rows[name].to_pylist())
    return ", ".join(f"{quoted(text)} ({count:,})" for text, count in sorted(counts.items()))
