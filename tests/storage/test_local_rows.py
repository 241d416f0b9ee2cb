"""Rows read from local files are those of `load_dataset`, and bring in no large package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import DatasetNotFoundError, FormatVersionError, SchemaError
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.storage.local_rows import read_local_ids, read_local_rows
from graphnet_datasets.storage.table import write_table
from tests.tables import rows, write_dataset

SELECT = """
import sys
from graphnet_datasets.storage.selection import select_rows
assert select_rows(["torch/gcn-small"])[0]["framework"] == "torch"
assert select_rows(["audio"])
print(sorted({"datasets", "huggingface_hub", "pandas", "torch", "paddle"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.mark.slow
def test_selecting_embedded_samples_imports_neither_datasets_nor_pandas_nor_a_framework() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SELECT], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("config", ["audio", pytest.param("fusible", marks=pytest.mark.slow)])
def test_embedded_rows_are_those_of_load_dataset(config: str) -> None:
    loaded = list(load_dataset(STARTER, config, split="all"))
    assert list(read_local_rows(STARTER, config)) == loaded
    wanted = [row["id"] for row in loaded[::7]]
    found = list(read_local_rows(STARTER, config, [*wanted, "no/such"]))
    assert found == [row for row in loaded if row["id"] in set(wanted)]


def test_ids_are_those_of_the_default_config(dataset: Path) -> None:
    loaded = load_dataset(dataset, split="all", columns=["id"])["id"][:]
    assert read_local_ids(dataset) == loaded
    assert read_local_ids(dataset / "nlp" / "train-0000.parquet") == loaded[-5:]


def test_a_file_from_before_a_column_has_null_there(dataset: Path, tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "mixed")
    file = root / "cv" / "test-0000.parquet"
    pq.write_table(pq.read_table(dataset / "cv" / "test-0000.parquet").drop(["family"]), file)
    write_readme(root)
    read = list(read_local_rows(root, "cv"))
    assert read == list(load_dataset(root, "cv", split="all"))
    assert {row["family"] for row in read if row["num_ops"] > 20} == {None}


def test_unreadable_files_raise_before_the_first_row(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"has no config `vc`\. Its configs are cv"):
        next(read_local_rows(dataset, "vc"))
    with pytest.raises(DatasetNotFoundError, match="does not exist"):
        next(read_local_rows(tmp_path / "missing"))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no end")
    with pytest.raises(SchemaError, match="is not a complete Parquet file"):
        next(read_local_rows(tmp_path / "cut.parquet"))
    pq.write_table(pa.table({"name": ["a"]}), tmp_path / "other.parquet")
    for reading in (read_local_rows(tmp_path / "other.parquet", ids=["a"]), None):
        with pytest.raises(SchemaError, match="has no column `id`"):
            read_local_ids(tmp_path / "other.parquet") if reading is None else next(reading)


def test_a_damaged_page_is_an_error_of_ours(tmp_path: Path) -> None:
    path = write_dataset(tmp_path) / "cv" / "train-0000.parquet"
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=r"^`.*train-0000\.parquet` is not a complete Parquet"):
        list(read_local_rows(tmp_path, "cv"))


def test_another_format_version_is_detected_by_its_column(tmp_path: Path) -> None:
    file = write_table(rows("cv", range(1, 3)), tmp_path / "now.parquet")
    table = pq.read_table(file).replace_schema_metadata(None)
    place = table.schema.get_field_index("schema_version")
    newer = pa.array([2, 2], table.schema.field(place).type)
    pq.write_table(table.set_column(place, "schema_version", newer), tmp_path / "newer.parquet")
    with pytest.raises(FormatVersionError, match=r"has format version 2; this library reads 1\."):
        next(read_local_rows(tmp_path / "newer.parquet"))
