"""Puts rows into the tables of a dataset: by task and split, nearly equal graphs on one side.

Used by the builds, and by `python -m builder columns`, which brings the tables that stand in a
directory up to date without capturing anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphnet_datasets.analysis.columns import cost_columns, derived_columns
from graphnet_datasets.analysis.groups import COLUMNS, split_groups
from graphnet_datasets.analysis.splits import SPLITS, split_of
from graphnet_datasets.analysis.subtasks import subtask
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.graphs import BUILD_COLUMNS
from graphnet_datasets.storage.table import read_table, write_table

from .catalog import Entry
from .provenance import build_columns

NAME = "{split}-{number:04}.parquet"


@dataclasses.dataclass(frozen=True)
class Placed:
    """Rows with the split of each; `left_out` are ids of those linked to two splits."""

    rows: list[dict[str, Any]]
    left_out: list[str]


def known_groups(directory: Path) -> dict[str, str]:
    """Return the groups of the graphs that stand in a dataset: they keep them."""
    found: dict[str, str] = {}
    for path in _tables(directory):
        names = pq.read_schema(path).names
        if "split_group" in names:
            table = read_table(path, columns=["id", "split_group"])
            pairs = zip(table["id"].to_pylist(), table["split_group"].to_pylist(), strict=True)
            found |= {sample_id: group for sample_id, group in pairs if group}
    return found


def place(rows: Sequence[dict[str, Any]], known: Mapping[str, str]) -> Placed:
    """Give rows their group and split, and leave out what is linked to groups of two splits."""
    groups = split_groups(pa.Table.from_pylist([_group_columns(row) for row in rows]), known)
    kept, left_out = [], []
    for row, group in zip(rows, groups, strict=True):
        if group is None:
            left_out.append(row["id"])
        else:
            kept.append({**row, "split_group": group, "split": split_of(group)})
    return Placed(kept, left_out)


def described(row: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return a captured row with the columns that its catalog entry tells."""
    return {**row, **(build_columns(entry, row) if entry is not None else {})}


def analysed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose derived columns are those of today; how it was made stays."""
    sample = Sample.from_row(row)
    made = {name: row.get(name) for name in BUILD_COLUMNS}
    return sample_to_row(sample, {**made, **derived_columns(sample)})


def write_rows(rows: Sequence[Mapping[str, Any]], out: Path, rows_per_shard: int = 1000) -> None:
    """Write rows with their splits by task, the smaller graphs first; stale shards go.

    Equal rows give equal files, shard by shard.
    """
    for task in TASKS:
        for split in SPLITS:
            chosen = [row for row in rows if (row["task"], row["split"]) == (task, split)]
            chosen.sort(key=lambda row: (row["num_ops"], row["id"]))
            starts = range(0, len(chosen), rows_per_shard)
            paths = [
                out / task / NAME.format(split=split, number=number)
                for number, _ in enumerate(starts)
            ]
            for path, start in zip(paths, starts, strict=True):
                write_table(chosen[start : start + rows_per_shard], path)
            for stale in set((out / task).glob(f"{split}-*.parquet")) - set(paths):
                stale.unlink()


def renew(directory: Path, entries: Mapping[str, Entry], is_regrouped: bool = False) -> Placed:
    """Bring the tables of a directory up to date: how each graph was made, its subtask and split.

    With `is_regrouped` groups are made anew, so that graphs may move between splits. What was
    calibrated and measured stays as it is. Doing it twice changes nothing.
    """
    known = {} if is_regrouped else known_groups(directory)
    rows = []
    for path in _tables(directory):
        for row in read_table(path).to_pylist():
            found = described(row, entries.get(row["id"]))
            sample = Sample.from_row(row)
            found["subtask"] = subtask(sample)
            if _has_unknown_sizes(sample):
                found |= cost_columns(sample)
            rows.append(found)
    placed = place(rows, known)
    write_rows(placed.rows, directory)
    return placed


def _has_unknown_sizes(sample: Sample) -> bool:
    """Tell whether a tensor has no recorded shape, since elements decide it."""
    results = (value for op in sample.ops for value in op.results or ())
    return any(value.dtype is not None and sample.shape_of(value) is None for value in results)


def _group_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    ops = [{"target": op["target"], "operands": op["operands"]} for op in row["ops"]]
    return {name: row[name] for name in COLUMNS if name != "ops"} | {"ops": ops}


def _tables(directory: Path) -> list[Path]:
    return [path for task in TASKS for path in sorted((directory / task).glob("*.parquet"))]
