"""Tables that stand in a directory are written again with the columns of today."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from builder.placing import write_again
from graphnet_datasets.schema.graphs import LATER_COLUMNS
from graphnet_datasets.schema.tables import SUBGRAPHS
from graphnet_datasets.storage.loading import STARTER


def test_older_tables_of_parts_get_the_columns_of_today_and_equal_bytes_after(
    tmp_path: Path,
) -> None:
    path = tmp_path / "typical" / "test-0000.parquet"
    path.parent.mkdir()
    shipped = pq.read_table(STARTER / "typical" / "test-0000.parquet").slice(0, 20)
    older = shipped.select([*reversed(shipped.column_names)])
    dropped = [name for name in sorted(LATER_COLUMNS) if name in older.column_names]
    pq.write_table(older.drop_columns(dropped), path)
    write_again(tmp_path, SUBGRAPHS)
    first = path.read_bytes()
    table = pq.read_table(path)
    assert table.column_names == SUBGRAPHS.schema.names
    assert table["ops"].equals(shipped["ops"])
    assert all(table[name].null_count == 20 for name in LATER_COLUMNS)
    write_again(tmp_path, SUBGRAPHS)
    assert path.read_bytes() == first
