"""Writes the full dataset out of captures: without duplicates, split by family, sharded by task."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.atomic import write_text
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import read_table

from .capturing import PACKAGE, Capture
from .pieces import check_pieces
from .placing import captured, known_groups, place, write_placed

EMBEDDED = PACKAGE / "starter" / "graphnet"
"""The dataset that comes with the package, whose groups every other one keeps."""

KEY_COLUMNS = ("id", "task", "num_ops", "family", "signature_hash")
"""What is read of each captured row before any is written."""


@dataclasses.dataclass(frozen=True)
class Graph:
    """What decides where a captured row goes, without the row itself.

    `entry` is the name of the catalog's entry: the graph's own, unless the model breaks.
    """

    entry: str
    id: str
    task: str
    num_ops: int
    family: str
    signature_hash: str


def write_full(captures: Iterable[Capture], out: Path) -> list[Graph]:
    """Write shards, README, `failures.jsonl` and `duplicates.jsonl`; return the graphs in them.

    Rows come as the workers wrote them, with their derived columns. Of graphs with the same
    signature the first one stays. Graphs that are embedded, or stand at `out`, keep their groups;
    `left_out.jsonl` names those that would link two splits. Truncated graphs stand in a config of
    their own.

    Raises:
        GraphNetError: of a model that breaks a piece is missing.
    """
    found = list(captures)
    graphs: dict[str, Graph] = {}
    failures: list[dict[str, str]] = []
    duplicates: list[dict[str, str]] = []
    for capture in found:
        if capture.path is None:
            failures.append({"id": capture.entry.name, "reason": capture.reason})
            continue
        for keys in read_table(capture.path, columns=list(KEY_COLUMNS)).to_pylist():
            graph = Graph(capture.entry.name, **keys)
            first = graphs.setdefault(graph.signature_hash, graph)
            if first is not graph:
                duplicates.append(
                    {"id": graph.id, "is_same_as": first.id, "signature_hash": graph.signature_hash}
                )
    out.mkdir(parents=True, exist_ok=True)
    write_lines(failures, out / "failures.jsonl")
    write_lines(duplicates, out / "duplicates.jsonl")
    chosen = {graph.id for graph in graphs.values()}
    kept = (row for row in captured(found, is_analysed=False) if row.id in chosen)
    placed = place(kept, known_groups(EMBEDDED) | known_groups(out))
    write_lines(
        [{"id": name, "reason": "linked to groups of two splits"} for name in placed.left_out],
        out / "left_out.jsonl",
    )
    write_placed(placed, out, is_truncated_apart=True)
    check_pieces(out, {each["id"] for each in duplicates})
    write_readme(out)
    left_out = set(placed.left_out)
    return [graph for graph in graphs.values() if graph.id not in left_out]


def write_lines(records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write records as JSON, one a line; the file is replaced when it is complete."""
    write_text(path, "".join(f"{json.dumps(record)}\n" for record in records))
