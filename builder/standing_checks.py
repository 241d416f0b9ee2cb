"""Checks of graphs of a dataset whose captures are no longer in a build directory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphnet_datasets.schema.graphs import VALIDATION_COLUMNS
from graphnet_datasets.schema.tables import GRAPHS
from graphnet_datasets.storage.table import read_table, write_arrow
from graphnet_datasets.validation import Validation, Validator

from .keeping import Columns, checked, with_validators
from .placing import stored_groups, tables_of, with_column


def check_standing(
    dataset: Path,
    max_flops: float,
    memory_limit: float,
    jobs: int = 1,
    failed: Collection[str] = (),
) -> Iterator[Validation]:
    """Check the graphs of a dataset whose rows have no outcome, and yield each outcome.

    Graphs that failed one of the checks `failed` are checked again: a graph that returned NaN for
    recorded inputs may pass with calibrated inputs.

    The rows of a file are updated together; other columns are kept as stored. The row of a failing
    graph contains the reason, and the next `ship` moves it.
    """

    def one(row: Mapping[str, Any], validator: Validator) -> Validation:
        return checked(row, validator, max_flops)

    for path in tables_of(dataset):
        recorded = read_table(path, columns=["id", "validation"]).to_pylist()
        names = [row["id"] for row in recorded if _is_wanted(row["validation"], failed)]
        if not names:
            continue
        rows = read_table(path, filters=[("id", "in", names)]).to_pylist()
        checks: dict[str, Columns] = {}
        for validation in with_validators(one, rows, memory_limit, jobs):
            checks[validation.sample_id] = validation.to_columns()
            yield validation
        write_arrow([_with(group, checks) for group in stored_groups(path, GRAPHS)], path, GRAPHS)


def _is_wanted(outcomes: Sequence[Mapping[str, Any]] | None, failed: Collection[str]) -> bool:
    return outcomes is None or any(
        outcome["outcome"] == "failed" and outcome["check"] in failed for outcome in outcomes
    )


def _with(group: pa.Table, checks: Mapping[str, Columns]) -> pa.Table:
    """Return the rows of a group with the outcomes of some of them."""
    names = group["id"].to_pylist()
    for column in VALIDATION_COLUMNS:
        before = group[column].to_pylist()
        values = [
            checks[name][column] if name in checks else value
            for name, value in zip(names, before, strict=True)
        ]
        group = with_column(group, column, values)
    return group
