"""The table of compiler bugs: its rows, its config and the lookup of one row by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.schema import COMPILER_BUGS_SCHEMA, ExpectedVerdict, sample_to_row
from graphnet_datasets.schema.tables import COMPILER_BUGS, table_of_schema
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import write_arrow
from tests.tables import chain, write_dataset

BUG: dict[str, Any] = {
    "bug_title": "ReLU drops NaN",
    "bug_url": "https://example.org/issues/1",
    "bug_compiler": "tvm",
    "bug_versions": "0.27",
    "bug_note": "NaN becomes 0.",
    "is_verified": True,
    "expected": [
        {
            "compiler": "tvm",
            "options": "{}",
            "num_variations": 0,
            "version": "0.27.0",
            "verdict": str(ExpectedVerdict.WRONG),
        }
    ],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_dataset(tmp_path / "graphs")
    row = {**sample_to_row(chain("bugs/relu-nan", 1)), **BUG}
    table = pa.Table.from_pylist([row], schema=COMPILER_BUGS_SCHEMA)
    write_arrow(table, root / "compiler_bugs" / "train-0000.parquet", COMPILER_BUGS)
    write_readme(root)
    return root


def test_rows_keep_the_bug_and_are_samples(root: Path) -> None:
    row = load_dataset(root, "compiler_bugs", split="train")[0]
    assert {name: row[name] for name in BUG} == BUG
    assert Sample.from_row(row) == chain("bugs/relu-nan", 1)
    assert table_of_schema(COMPILER_BUGS_SCHEMA) is COMPILER_BUGS


def test_the_default_config_leaves_them_out(root: Path) -> None:
    assert "bugs/relu-nan" not in load_dataset(root, split="all")["id"]
    assert [row["id"] for row in select_rows("compiler_bugs", dataset=root)] == ["bugs/relu-nan"]


def test_one_of_them_is_found_by_its_id(root: Path) -> None:
    (row,) = select_rows("bugs/relu-nan", dataset=root)
    assert row["bug_url"] == BUG["bug_url"]
