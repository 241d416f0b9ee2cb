"""Puts rows into the tables of a dataset: by task and split, nearly equal graphs on one side.

Used by the builds, and by `python -m builder columns`, which brings the tables that stand in a
directory up to date without capturing anything. Rows are loaded when they are written, a hundred at
a time: as Python's objects thousands of graphs would take all memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from .capturing import Capture
from .catalog import Entry
from .provenance import build_columns

ROWS_PER_SHARD = 1000
"""Rows of one file: ten row groups, a few megabytes."""

_KEYS = (*COLUMNS, "task", "num_ops")


@dataclasses.dataclass(frozen=True)
class Pending:
    """A row that waits to be written; `graph` is one row of what groups are made of."""

    id: str
    task: str
    num_ops: int
    graph: pa.Table
    load: Callable[[], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Placed:
    """Rows with their groups; `left_out` are ids of those that are linked to two splits."""

    rows: list[tuple[Pending, str]]
    left_out: list[str]


def captured(captures: Iterable[Capture], is_analysed: bool) -> Iterator[Pending]:
    """Yield the rows of captures, described by their entries.

    With `is_analysed` derived columns are computed anew, as today's analysis has them.
    """
    for capture in captures:
        if capture.path is not None:
            path, entry = capture.path, capture.entry

            def load(path: Path = path, entry: Entry = entry) -> dict[str, Any]:
                (row,) = read_table(path).to_pylist()
                return analysed(described(row, entry)) if is_analysed else described(row, entry)

            yield _pending(read_table(path, columns=list(_KEYS)), load)


def standing(directory: Path, entries: Mapping[str, Entry]) -> Iterator[Pending]:
    """Yield the rows of a dataset, as `renewed` makes them."""
    for path in _tables(directory):
        table = read_table(path)
        for index in range(table.num_rows):
            part = table.slice(index, 1)

            def load(part: pa.Table = part) -> dict[str, Any]:
                (row,) = part.to_pylist()
                return renewed(row, entries.get(row["id"]))

            yield _pending(part.select(list(_KEYS)), load)


def known_groups(directory: Path) -> dict[str, str]:
    """Return the groups of the graphs that stand in a dataset: they keep them."""
    found: dict[str, str] = {}
    for path in _tables(directory):
        if "split_group" in pq.read_schema(path).names:
            table = read_table(path, columns=["id", "split_group"])
            pairs = zip(table["id"].to_pylist(), table["split_group"].to_pylist(), strict=True)
            found |= {sample_id: group for sample_id, group in pairs if group}
    return found


def place(pending: Iterable[Pending], known: Mapping[str, str]) -> Placed:
    """Give rows their groups, and leave out what is linked to groups of two splits."""
    rows = list(pending)
    if not rows:
        return Placed([], [])
    groups = split_groups(pa.concat_tables(each.graph for each in rows), known)
    pairs = list(zip(rows, groups, strict=True))
    return Placed(
        [(each, group) for each, group in pairs if group is not None],
        [each.id for each, group in pairs if group is None],
    )


def write_placed(placed: Placed, out: Path) -> None:
    """Write rows by task and split, the smaller graphs first; stale shards go.

    Equal rows give equal files, shard by shard.
    """
    for task in TASKS:
        for split in SPLITS:
            chosen = [
                (each, group)
                for each, group in placed.rows
                if each.task == task and split_of(group) == split
            ]
            chosen.sort(key=lambda pair: (pair[0].num_ops, pair[0].id))
            starts = range(0, len(chosen), ROWS_PER_SHARD)
            paths = [out / task / f"{split}-{number:04}.parquet" for number, _ in enumerate(starts)]
            for path, start in zip(paths, starts, strict=True):
                write_table(_loaded(chosen[start : start + ROWS_PER_SHARD]), path)
            for stale in set((out / task).glob(f"{split}-*.parquet")) - set(paths):
                stale.unlink()


def described(row: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return a captured row with the columns that its catalog entry tells."""
    return {**row, **(build_columns(entry, row) if entry is not None else {})}


def analysed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose derived columns are those of today; how it was made stays."""
    sample = Sample.from_row(row)
    made = {name: row.get(name) for name in BUILD_COLUMNS}
    return sample_to_row(sample, {**made, **derived_columns(sample)})


def renewed(row: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return a row with what is known of it without a capture: its entry, subtask, and costs.

    What was calibrated and checked stays as it is.
    """
    sample = Sample.from_row(row)
    found = {**described(row, entry), "subtask": subtask(sample)}
    if sample.framework == "torch" and _has_unknown_sizes(sample):
        found |= cost_columns(sample)
    return found


def read_columns(directory: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of all rows of a dataset."""
    return [
        row
        for path in _tables(directory)
        for row in read_table(path, columns=list(columns)).to_pylist()
    ]


def _loaded(rows: Sequence[tuple[Pending, str]]) -> Iterator[dict[str, Any]]:
    for each, group in rows:
        yield {**each.load(), "split_group": group, "split": split_of(group)}


def _pending(keys: pa.Table, load: Callable[[], dict[str, Any]]) -> Pending:
    return Pending(
        id=keys["id"][0].as_py(),
        task=keys["task"][0].as_py(),
        num_ops=keys["num_ops"][0].as_py(),
        graph=_graph(keys),
        load=load,
    )


def _graph(keys: pa.Table) -> pa.Table:
    """Return what groups are made of, and of each operator its name and operands alone."""
    ops = keys["ops"].combine_chunks()
    flat = ops.flatten()
    fields = ["target", "operands"]
    slim = pa.StructArray.from_arrays([flat.field(name) for name in fields], fields)
    offsets = pa.array([0, len(flat)], pa.int32())
    place = COLUMNS.index("ops")
    return keys.select(list(COLUMNS)).set_column(
        place, "ops", pa.ListArray.from_arrays(offsets, slim)
    )


def _has_unknown_sizes(sample: Sample) -> bool:
    """Tell whether a tensor has no recorded shape, since elements decide it."""
    results = (value for op in sample.ops for value in op.results or ())
    return any(value.dtype is not None and sample.shape_of(value) is None for value in results)


def _tables(directory: Path) -> list[Path]:
    return [path for task in TASKS for path in sorted((directory / task).glob("*.parquet"))]
