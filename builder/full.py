"""Writing of the full dataset from captures, without duplicates, by split and task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.paths import without_folders
from graphnet_datasets.schema import SCHEMA_VERSION, Table
from graphnet_datasets.schema.builds import SPLIT_STAGE
from graphnet_datasets.schema.tables import DUPLICATES, FAILURES
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import read_table, to_arrow, write_arrow

from .capturing import EMBEDDED, Capture
from .catalog import Entry
from .keeping import Columns
from .pieces import check_pieces
from .placing import Pending, captured, known_groups, place, truncated_ids, write_placed
from .reasons import reason_class, stage_of

KEY_COLUMNS = ("id", "task", "num_ops", "family", "signature_hash", "is_dynamic")
"""Columns of each captured row that are read before rows are written."""


@dataclasses.dataclass(frozen=True)
class Graph:
    """The properties of a captured row that determine its place, without the row itself.

    `entry` is the name of the catalog entry: that of the graph, unless the model breaks.
    """

    entry: str
    id: str
    task: str
    num_ops: int
    family: str
    signature_hash: str
    is_dynamic: bool


def write_full(
    captures: Iterable[Capture],
    out: Path,
    standing: Iterable[Pending] = (),
    known_columns: Mapping[str, Columns] | None = None,
    *,
    standing_duplicates: Iterable[Mapping[str, Any]] = (),
    is_regrouped: bool = False,
) -> list[Graph]:
    """Write shards, README and the tables `failures` and `duplicates`; return the graphs.

    Rows are written unchanged, with the derived columns of the workers. Of graphs with the same
    signature, with or without symbolic dimensions, the first is kept: an embedded graph or one of
    `out`, since records refer to it. These graphs keep their groups. A graph that would link two
    splits is left out and listed in `failures`. With `is_regrouped`, all groups and splits are
    chosen anew. Truncated graphs have their own config. Rows of `standing` are written as well if
    none of their entries was tried, and so are rows of `standing_duplicates` if the graph that they
    equal is written. `known_columns` contains stored columns by signature
    (`keeping`).

    Raises:
        GraphNetError: a piece of a model that breaks is missing.
    """
    all_captures = list(captures)
    known_ids = known_groups(EMBEDDED) | known_groups(out)
    entries = {capture.entry.name: capture.entry for capture in all_captures}
    every = [graph for capture in all_captures for graph in _graphs(capture)]
    tried = {*entries, *(graph.id for graph in every)}
    rows = [row for row in standing if row.id not in tried]
    first_of = {(row.signature, row.is_dynamic): row.id for row in reversed(rows)}
    graphs: dict[str, Graph] = {}
    duplicates: list[dict[str, Any]] = []
    for graph in sorted(every, key=lambda graph_key: graph_key.id not in known_ids):
        first = first_of.setdefault((graph.signature_hash, graph.is_dynamic), graph.id)
        if graph.id == first:
            graphs[graph.id] = graph
        else:
            duplicate = {"is_same_as": first, "signature_hash": graph.signature_hash}
            duplicates.append({**_told(entries[graph.entry]), "id": graph.id, **duplicate})
    out.mkdir(parents=True, exist_ok=True)
    rows += [row for row in captured(all_captures, False, known_columns) if row.id in graphs]
    kept_groups = None if is_regrouped else known_ids
    placed = place(rows, kept_groups, truncated_ids(EMBEDDED) | truncated_ids(out))
    left_out = set(placed.left_out)
    failures = [
        _failure(capture.entry, capture.reason) for capture in all_captures if capture.path is None
    ]
    by_id = {name: entries[graph.entry] for name, graph in graphs.items()}
    failures += [_leaking(name, by_id.get(name)) for name in placed.left_out]
    write_placed(placed, out, is_truncated_apart=True)
    write_log(failures, out, FAILURES)
    written = {row.id for row, _ in placed.rows}
    duplicates += [
        dict(row)
        for row in standing_duplicates
        if row["id"] not in written | tried and row["is_same_as"] in written
    ]
    write_log(duplicates, out, DUPLICATES)
    check_pieces(out, {duplicate["id"] for duplicate in duplicates})
    write_readme(out)
    return [graph for graph in graphs.values() if graph.id not in left_out]


def _graphs(capture: Capture) -> list[Graph]:
    """Return the properties that determine the places of a capture's rows; none if it failed."""
    if capture.path is None:
        return []
    keys = read_table(capture.path, columns=list(KEY_COLUMNS)).to_pylist()
    return [Graph(capture.entry.name, **key) for key in keys]


def read_log(out: Path, table: Table) -> list[dict[str, Any]]:
    """Return the rows of one of the tables of a build."""
    paths = sorted((out / table.name).glob("*.parquet"))
    return [row for path in paths for row in read_table(path).to_pylist()]


def write_log(rows: Iterable[Mapping[str, Any]], out: Path, table: Table) -> None:
    """Write one of the tables of a build, sorted by id; write no file without rows."""
    path = out / table.name / "train-0000.parquet"
    ordered = sorted(rows, key=lambda row: row["id"])
    if ordered:
        whole = [{"schema_version": SCHEMA_VERSION, **row} for row in ordered]
        write_arrow(to_arrow(whole, table), path, table)
    else:
        path.unlink(missing_ok=True)


def _told(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.name,
        "task": entry.task,
        "library": entry.library,
        "catalog_line": entry.line,
    }


def _failure(entry: Entry, reason: str) -> dict[str, Any]:
    kind = reason_class(reason).partition(": ")[2] or "unknown"
    return {
        **_told(entry),
        "stage": stage_of(reason),
        "kind": kind,
        "reason": without_folders(reason),
    }


def _leaking(name: str, entry: Entry | None) -> dict[str, Any]:
    description = _told(entry) if entry else {"task": "", "library": "", "catalog_line": ""}
    reason = "it would link groups of two splits"
    return {
        **description,
        "id": name,
        "stage": SPLIT_STAGE,
        "kind": "links two splits",
        "reason": reason,
    }
