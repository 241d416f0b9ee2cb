"""Every column of every table has a description."""

from __future__ import annotations

import pytest

from graphnet_datasets.schema import TABLES, Table
from graphnet_datasets.schema.columns import describe_columns


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_is_described_and_nothing_else(table: Table) -> None:
    meanings = {name: meaning for name, _, meaning in describe_columns(table.columns)}
    assert set(table.schema.names) <= meanings.keys()
    assert all(meanings.values())


def test_values_are_described_in_each_place() -> None:
    names = [name for name, _, _ in describe_columns(TABLES["graphs"].columns)]
    for place in ("inputs", "ops.results"):
        for field in ("dtype", "shape", "symbolic_shape", "stride", "symbolic_stride"):
            assert f"{place}.{field}" in names
