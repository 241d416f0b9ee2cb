"""Shards of a split."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets.storage.shards import row_groups, write_shards
from graphnet_datasets.storage.table import to_arrow


def tables(*sizes: int) -> list[pa.Table]:
    names = iter(range(sum(sizes)))
    return [to_arrow([{"id": str(next(names))} for _ in range(size)]) for size in sizes]


@pytest.mark.parametrize("sizes", [(), (1,), (5,), (2, 0, 3), (1,) * 7, (3, 11, 1)])
def test_row_groups_keep_rows_and_order(sizes: tuple[int, ...]) -> None:
    groups = list(row_groups(tables(*sizes), 3))
    total = sum(sizes)
    assert [group.num_rows for group in groups] == [3] * (total // 3) + [total % 3] * (
        total % 3 > 0
    )
    assert [name for group in groups for name in group["id"].to_pylist()] == [
        str(number) for number in range(total)
    ]


def test_a_shard_holds_so_many_row_groups_and_the_next_goes_on(tmp_path: Path) -> None:
    paths = write_shards(iter(tables(*[1] * 450)), tmp_path, "test", shard_rows=200)
    assert [path.name for path in paths] == [f"test-000{number}.parquet" for number in range(3)]
    groups = [
        [pq.read_metadata(path).row_group(index).num_rows for index in range(groups)]
        for path in paths
        for groups in [pq.read_metadata(path).num_row_groups]
    ]
    assert groups == [[100, 100], [100, 100], [50]]
    read = [
        name for path in paths for name in pq.read_table(path, columns=["id"])["id"].to_pylist()
    ]
    assert read == [str(number) for number in range(450)]


def test_no_rows_are_no_shards(tmp_path: Path) -> None:
    assert write_shards([], tmp_path / "cv", "train") == []
    assert not (tmp_path / "cv").exists()
