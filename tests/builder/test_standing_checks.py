"""What stands in a dataset unchecked is checked there, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from builder.standing_checks import check_standing
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.graphs import VALIDATION_COLUMNS
from graphnet_datasets.storage.table import read_table, write_table
from graphnet_datasets.validation import CHECKS, CheckResult, Validation
from tests.validation.graphs import CUSTOM, VALID


def others(table: pa.Table) -> pa.Table:
    return table.drop_columns(list(VALIDATION_COLUMNS))


@pytest.mark.slow
@pytest.mark.torch
def test_rows_of_which_nothing_is_known_get_their_outcome(tmp_path: Path) -> None:
    path = tmp_path / "other" / "train-0000.parquet"
    path.parent.mkdir()
    write_table([VALID, CUSTOM], path)
    before = read_table(path)
    found = {each.sample_id: each for each in check_standing(tmp_path, 1e9, 8)}
    assert {name: each.is_valid for name, each in found.items()} == {
        VALID.id: True,
        CUSTOM.id: False,
    }
    after = read_table(path)
    assert others(after).equals(others(before))
    for row in after.to_pylist():
        expected = found[row["id"]]
        assert Validation.from_row(row) == expected
        assert [each.check for each in expected.results] == list(CHECKS)
        assert row["why_excluded"] == (expected.why_excluded or None)
    assert [row["id"] for row in after.to_pylist() if row["why_excluded"]] == [CUSTOM.id]
    content = path.read_bytes()
    assert list(check_standing(tmp_path, 1e9, 8)) == []
    assert path.read_bytes() == content


@pytest.mark.torch
def test_a_graph_too_large_to_run_is_checked_without(tmp_path: Path) -> None:
    path = tmp_path / "cv" / "train-0000.parquet"
    path.parent.mkdir()
    write_table([VALID], path)
    (found,) = check_standing(tmp_path, 0, 8)
    skipped = {each.check for each in found.results if each.outcome == "skipped"}
    assert skipped == {"runnable", "decomposable", "reextractable"}
    assert found.is_valid


@pytest.mark.torch
def test_rows_that_failed_a_check_are_checked_once_more_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "other" / "train-0000.parquet"
    path.parent.mkdir()
    failed = CheckResult("runnable", "failed", "The outputs hold 4 NaN elements.", {})
    before = Validation(VALID.id, (failed,))
    assert before.why_excluded
    write_table([{**sample_to_row(VALID), **before.to_columns()}], path)
    assert list(check_standing(tmp_path, 1e9, 8, failed=["decomposable"])) == []
    (found,) = check_standing(tmp_path, 1e9, 8, failed=["runnable"])
    assert found.is_valid
    (after,) = read_table(path).to_pylist()
    assert after["why_excluded"] is None
