"""The embedded rows say what today's analysis says: a change of it has to rewrite them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from builder.catalog import parse_line
from builder.provenance import is_cut
from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import BUILD_COLUMNS
from graphnet_datasets.storage.table import read_table
from tests.embedded import paths

FILES = paths(*TASKS)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-12)
    return first == second


def chosen() -> list[tuple[Path, str]]:
    """Return table and id of twenty rows of torch: all tasks and splits, up to 300 operators."""
    filters = [("framework", "==", "torch"), ("num_ops", "<=", 300)]
    tables = [(path, read_table(path, ["id"], filters)) for path in FILES]
    found = [(path, name) for path, table in tables for name in table["id"].to_pylist()]
    return found[:: max(1, len(found) // 20)][:20]


@pytest.mark.parametrize(("path", "name"), chosen(), ids=lambda part: getattr(part, "stem", part))
def test_derived_columns_are_those_of_today(path: Path, name: str) -> None:
    (row,) = read_table(path, filters=[("id", "==", name)]).to_pylist()
    for column, value in derived_columns(Sample.from_row(row)).items():
        assert same(value, row[column]), (
            f"`{column}` of `{name}` is {value!r} by today's analysis, but the embedded dataset "
            f"says {row[column]!r}. Run `python -m builder columns`."
        )


def test_every_group_is_in_the_split_of_its_name() -> None:
    for path in FILES:
        table = read_table(path, columns=["split_group", "split"])
        groups = table["split_group"].to_pylist()
        assert {split_of(group) for group in groups} == {path.name.partition("-")[0]}, path
        assert set(table["split"].to_pylist()) == {path.name.partition("-")[0]}, path


def test_each_row_says_how_it_was_made() -> None:
    names = ["id", "parent_id", "tags", *BUILD_COLUMNS]
    for path in FILES:
        for row in read_table(path, columns=names).to_pylist():
            entry = parse_line(row["catalog_line"])
            assert entry.name == row["parent_id"] or entry.name == row["id"]
            assert json.loads(row["overrides"]) == json.loads(json.dumps(entry.overrides))
            assert row["is_truncated"] == ("truncated" in row["tags"]) == is_cut(entry)
            assert row["library"] == entry.library
            assert row["seed"] == 0
            assert (row["library_version"] is None) <= row["is_reimplementation"]
