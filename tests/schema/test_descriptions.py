"""Every column has a line, and every line a column."""

from __future__ import annotations

from graphnet_datasets.schema import GRAPHS_SCHEMA
from graphnet_datasets.schema.builds import (
    DUPLICATE_DESCRIPTIONS,
    DUPLICATES_SCHEMA,
    FAILURE_DESCRIPTIONS,
    FAILURES_SCHEMA,
)
from graphnet_datasets.schema.descriptions import DESCRIPTIONS, describe_columns
from graphnet_datasets.schema.tuning import TUNING_RECORDS_SCHEMA, TUNING_TASKS_SCHEMA
from graphnet_datasets.schema.tuning_descriptions import RECORD_DESCRIPTIONS, TASK_DESCRIPTIONS


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


def test_every_column_of_the_tables_beside_has_a_line_and_no_other() -> None:
    for schema, descriptions in (
        (TUNING_TASKS_SCHEMA, TASK_DESCRIPTIONS),
        (TUNING_RECORDS_SCHEMA, RECORD_DESCRIPTIONS),
        (FAILURES_SCHEMA, FAILURE_DESCRIPTIONS),
        (DUPLICATES_SCHEMA, DUPLICATE_DESCRIPTIONS),
    ):
        assert {name for name, _, _ in describe_columns(schema, descriptions)} == set(descriptions)
