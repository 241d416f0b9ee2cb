"""Checks of the graphs of a dataset of which no build directory has a capture any more."""

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
from .placing import stored_groups, tables_of


def check_standing(
    dataset: Path,
    max_flops: float,
    memory_limit: float,
    jobs: int = 1,
    failed: Collection[str] = (),
) -> Iterator[Validation]:
    """Check the graphs of a dataset whose rows have no outcome, and yield each when it is there.

    Those that failed one of the checks `failed` are checked once more: what gave NaN on the inputs
    as recorded may give numbers on calibrated ones.

    The rows of a file get theirs together, when all are there; what stands elsewhere in it stays as
    it is stored. A graph that fails says why in its row, and moves with the next `ship`.
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
    """Return the rows of a group with what was found of some of them."""
    names = group["id"].to_pylist()
    for column in VALIDATION_COLUMNS:
        place = group.schema.get_field_index(column)
        before = group[column].to_pylist()
        values = [
            checks[name][column] if name in checks else value
            for name, value in zip(names, before, strict=True)
        ]
        field = group.schema.field(place)
        group = group.set_column(place, field, pa.array(values, field.type))
    return group
