"""Tables that stand in a directory are written again with the columns of today."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow.parquet as pq

from builder.catalog import parse_line
from builder.placing import Pending, place, renewed, standing, write_again
from builder.provenance import build_columns
from graphnet_datasets.schema.graphs import LATER_COLUMNS
from graphnet_datasets.schema.tables import SUBGRAPHS
from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.storage.table import read_table


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


def test_another_line_of_the_same_name_does_not_change_how_a_row_was_made() -> None:
    """A walk's line captures the whole model, one of `chosen.txt` its first layers."""
    whole = "a/b | nlp | transformers | BertModel |  | x=ids(1,384; 9) | float32 | eval |  | "
    cut = whole.replace("BertModel |  |", "BertModel | stack_depth=2 |")
    (row,) = read_table(STARTER / "other" / "test-0000.parquet").slice(0, 1).to_pylist()
    row = {**row, **build_columns(parse_line(whole), row)}
    kept = renewed(row, parse_line(cut))
    assert (kept["catalog_line"], kept["is_truncated"]) == (whole, False)
    assert "truncated" not in kept["tags"]
    nameless = renewed({**row, "catalog_line": None}, parse_line(cut))
    assert (nameless["catalog_line"], nameless["is_truncated"]) == (cut, True)


def test_rows_get_the_licence_of_their_architecture() -> None:
    (row,) = read_table(STARTER / "other" / "test-0000.parquet").slice(0, 1).to_pylist()
    model = {"library": "spandrel", "model_name": "SwiftSRGAN.SwiftSRGAN", "license": "MIT"}
    assert renewed({**row, **model}, None)["license"] == "CC0-1.0"
    assert renewed({**row, **model, "library": None}, None)["license"] == "MIT"


def test_the_whole_graph_of_the_name_of_a_truncated_one_is_given_a_group_of_its_own() -> None:
    row = next(standing(STARTER, {}))
    whole = dataclasses.replace(row, is_truncated=False)
    cut = dataclasses.replace(row, is_truncated=True)
    known = {row.id: "group of another model"}

    def group_of(pending: Pending, was_truncated: set[str]) -> str:
        ((_, group),) = place([pending], known, was_truncated).rows
        return group

    assert group_of(whole, set()) == "group of another model"
    assert group_of(cut, {row.id}) == "group of another model", "it stays what it was"
    assert group_of(whole, {row.id}) != "group of another model"
