"""Writes the full dataset out of captures: without duplicates, split by family, sharded by task."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.splits import SPLITS, split_of
from graphnet_datasets.atomic import write_text
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import read_table, write_table

from .capturing import Capture

ROWS_PER_SHARD = 1000
"""Rows of one file: ten row groups, a few megabytes."""

KEY_COLUMNS = ("id", "task", "num_ops", "family", "signature_hash")


@dataclasses.dataclass(frozen=True)
class Graph:
    """What decides where a captured row goes, without the row itself."""

    path: Path
    id: str
    task: str
    num_ops: int
    family: str
    signature_hash: str


def write_full(captures: Iterable[Capture], out: Path) -> list[Graph]:
    """Write shards, README, `failures.jsonl` and `duplicates.jsonl`; return the graphs in them.

    Rows come as the workers wrote them, with their derived columns. Of graphs with the same
    signature the first one stays.
    """
    graphs: dict[str, Graph] = {}
    failures: list[dict[str, str]] = []
    duplicates: list[dict[str, str]] = []
    for capture in captures:
        if capture.path is None:
            failures.append({"id": capture.entry.name, "reason": capture.reason})
            continue
        (keys,) = read_table(capture.path, columns=list(KEY_COLUMNS)).to_pylist()
        graph = Graph(capture.path, **keys)
        first = graphs.setdefault(graph.signature_hash, graph)
        if first is not graph:
            duplicates.append(
                {"id": graph.id, "is_same_as": first.id, "signature_hash": graph.signature_hash}
            )
    out.mkdir(parents=True, exist_ok=True)
    write_lines(failures, out / "failures.jsonl")
    write_lines(duplicates, out / "duplicates.jsonl")
    write_shards(list(graphs.values()), out)
    return list(graphs.values())


def write_shards(graphs: list[Graph], out: Path) -> None:
    """Write the rows of `graphs` by task and split, sorted by number of operators, then by id."""
    for task in TASKS:
        for split in SPLITS:
            chosen = [
                graph for graph in graphs if graph.task == task and split_of(graph.family) == split
            ]
            chosen.sort(key=lambda graph: (graph.num_ops, graph.id))
            for stale in (out / task).glob(f"{split}-*.parquet"):
                stale.unlink()
            for number, start in enumerate(range(0, len(chosen), ROWS_PER_SHARD)):
                shard = chosen[start : start + ROWS_PER_SHARD]
                write_table(_rows(shard), out / task / f"{split}-{number:04}.parquet")
    write_readme(out)


def write_lines(records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write records as JSON, one a line; the file is replaced when it is complete."""
    write_text(path, "".join(f"{json.dumps(record)}\n" for record in records))


def _rows(graphs: list[Graph]) -> Iterator[dict[str, Any]]:
    for graph in graphs:
        yield from read_table(graph.path).to_pylist()
