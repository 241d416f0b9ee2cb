"""Shards of a split: several Parquet files that keep the order of their rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from ..schema import Table
from ..schema.tables import GRAPHS
from .table import ROW_GROUP_SIZE, write_arrow

SHARD_ROWS = 5_000
"""Rows per shard: 50 row groups, some tens of megabytes. Smaller shards cost more requests, since a
reader fetches the footer of each shard; larger shards cost more when an interrupted upload is
repeated."""


def write_shards(
    tables: Iterable[pa.Table],
    folder: Path,
    split: str,
    *,
    shard_rows: int = SHARD_ROWS,
    table: Table = GRAPHS,
) -> list[Path]:
    """Write rows of `table` to `folder/split-0000.parquet`, … and return the paths.

    Tables may have any number of rows; at most one row group is in memory. If rows are sorted by
    `num_ops`, the row groups and shards of a split have disjoint sizes, so that a filter on size
    reads only the necessary row groups.

    >>> import tempfile
    >>> from graphnet_datasets.storage.table import to_arrow
    >>> tables = (to_arrow([{"id": str(index)}]) for index in range(5))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [path.name for path in write_shards(tables, Path(directory), "train", shard_rows=3)]
    ['train-0000.parquet', 'train-0001.parquet']
    """
    group_rows = table.row_group_size
    groups = row_groups(tables, min(group_rows, shard_rows))
    paths = []
    per_shard = max(1, shard_rows // group_rows)
    for number, first in enumerate(groups):
        shard = itertools.chain([first], itertools.islice(groups, per_shard - 1))
        paths.append(write_arrow(shard, folder / f"{split}-{number:04d}.parquet", table))
    return paths


def row_groups(tables: Iterable[pa.Table], size: int = ROW_GROUP_SIZE) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `size` rows; the last table may be smaller."""
    pending: list[pa.Table] = []
    num_rows = 0
    for table in tables:
        pending.append(table)
        num_rows += table.num_rows
        while num_rows >= size:
            whole = pa.concat_tables(pending)
            yield whole.slice(0, size).combine_chunks()
            pending = [whole.slice(size)]
            num_rows -= size
    if num_rows:
        yield pa.concat_tables(pending).combine_chunks()
