"""Every column has a line, and every line a column."""

from __future__ import annotations

from graphnet_datasets.schema import GRAPHS_SCHEMA
from graphnet_datasets.schema.descriptions import DESCRIPTIONS, describe_columns


def test_every_column_is_described_and_nothing_else() -> None:
    described = {name: meaning for name, _, meaning in describe_columns(GRAPHS_SCHEMA)}
    assert list(described)[: len(GRAPHS_SCHEMA.names)]  # nested ones stand behind their own
    assert set(GRAPHS_SCHEMA.names) <= described.keys()
    assert DESCRIPTIONS.keys() <= described.keys()
    assert all(described.values())
    assert {name for name in described if name.startswith("ops.results.")} == {
        f"ops.results.{each}"
        for each in ("dtype", "shape", "symbolic_shape", "stride", "symbolic_stride")
    }
