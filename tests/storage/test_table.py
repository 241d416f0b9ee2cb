"""Writing and reading Parquet files of graphs."""

from __future__ import annotations

import re
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.errors import DatasetNotFoundError, FormatVersionError, SchemaError
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import GRAPHS_SCHEMA, graphs_features, sample_from_row
from graphnet_datasets.storage.table import ROW_GROUP_SIZE, check_file, read_table, write_table
from tests.exact import exact
from tests.strategies import samples
from tests.tables import chain, rows


@settings(max_examples=20)
@given(st.lists(samples(), max_size=3))
def test_samples_survive_a_file_exactly(
    tmp_path_factory: pytest.TempPathFactory, batch: list[Sample]
) -> None:
    path = write_table(batch, tmp_path_factory.mktemp("table") / "graphs.parquet")
    read = [sample_from_row(row) for row in read_table(path).to_pylist()]
    assert [exact(sample) for sample in read] == [exact(sample) for sample in batch]


def test_samples_get_their_derived_columns_and_rows_keep_theirs(tmp_path: Path) -> None:
    sample = chain("a/b", 3)
    (of_sample,) = read_table(write_table([sample], tmp_path / "a.parquet")).to_pylist()
    for name in ("family", "structure_hash", "signature_hash"):
        assert len(of_sample[name]) >= 16
    (of_row,) = read_table(write_table(rows("cv", range(1, 2)), tmp_path / "b.parquet")).to_pylist()
    assert (of_row["family"], of_row["structure_hash"]) == ("odd", None)


def test_a_file_is_zstd_in_row_groups_with_page_index_and_features(tmp_path: Path) -> None:
    path = write_table(rows("cv", range(2 * ROW_GROUP_SIZE + 1)), tmp_path / "graphs.parquet")
    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [
            ROW_GROUP_SIZE,
            ROW_GROUP_SIZE,
            1,
        ]
        column = metadata.row_group(0).column(GRAPHS_SCHEMA.get_field_index("task"))
        assert (column.compression, column.has_column_index, column.has_offset_index) == (
            "ZSTD",
            True,
            True,
        )
        assert datasets.Features.from_arrow_schema(file.schema_arrow) == graphs_features()


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    first = write_table(rows("cv", range(30)), tmp_path / "first.parquet")
    second = write_table(iter(rows("cv", range(30))), tmp_path / "second.parquet")
    assert first.read_bytes() == second.read_bytes()


def test_a_failed_write_keeps_only_existing_files(tmp_path: Path) -> None:
    path = write_table(rows("cv", range(3)), tmp_path / "graphs.parquet")
    before = path.read_bytes()
    good, bad = rows("cv", range(2))
    bad["num_ops"] = "two"
    message = (
        "A row among `cv/chain-0`, `cv/chain-1` … does not match the columns of the table: Could "
        "not convert 'two' with type str: tried to convert to int64. Correct its values."
    )
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        write_table([good, bad], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_column_that_the_table_lacks_is_refused(tmp_path: Path) -> None:
    (row,) = rows("cv", range(1))
    message = "Row `cv/chain-0` has the column `colour`, which the table lacks. Its columns are "
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}id, task, "):
        write_table([{**row, "colour": "red"}], tmp_path / "graphs.parquet")


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    (row,) = rows("cv", range(1))
    with pytest.raises(
        SchemaError, match=r"^A row among `cv/chain-0` … does not match the columns"
    ):
        write_table([{**row, "source": "\ud800"}], tmp_path / "graphs.parquet")


@pytest.mark.parametrize("size", [0, 3, 500, -1])
def test_a_truncated_file_says_so(tmp_path: Path, size: int) -> None:
    path = write_table(rows("cv", range(20)), tmp_path / "graphs.parquet")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(SchemaError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"`{path}` is not a complete Parquet file: ")
    assert str(caught.value).endswith(". Download or write it again.")


def test_a_damaged_page_says_so(tmp_path: Path) -> None:
    path = write_table(rows("cv", range(20)), tmp_path / "graphs.parquet")
    content = bytearray(path.read_bytes())
    content[4:600] = bytes(596)
    path.write_bytes(content)
    with pytest.raises(SchemaError, match="is not a complete Parquet file"):
        read_table(path)


def test_garbage_and_nothing_are_two_errors(tmp_path: Path) -> None:
    path = tmp_path / "graphs.parquet"
    with pytest.raises(
        DatasetNotFoundError, match=f"^The file `{re.escape(str(path))}` does not exist"
    ):
        check_file(path)
    path.write_bytes(b"\x93garbage" * 1_000_000)
    with pytest.raises(SchemaError, match="is not a complete Parquet file"):
        check_file(path)


def test_another_format_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "graphs.parquet"
    metadata = {"graphnet_datasets": '{"table": "graphs", "schema_version": 9}'}
    pq.write_table(pa.table({"id": ["a"]}).replace_schema_metadata(metadata), path)
    message = (
        f"`{path}` has format version 9; this library reads 1. Install the release of "
        "`graphnet-datasets` that reads version 9, or create the file again with this release."
    )
    with pytest.raises(FormatVersionError, match=f"^{re.escape(message)}$"):
        check_file(path)


def test_columns_and_filters_read_less(tmp_path: Path) -> None:
    path = write_table(rows("cv", range(20)), tmp_path / "k=v" / "graphs.parquet")
    table = read_table(path, columns=["id", "num_ops"], filters=[("num_ops", ">", 17)])
    assert table.to_pydict() == {"id": ["cv/chain-18", "cv/chain-19"], "num_ops": [18, 19]}


@pytest.mark.parametrize("name", ["arrow.uuid", "arrow.opaque", "arrow.fixed_shape_tensor"])
def test_types_of_extensions_are_refused(name: str, tmp_path: Path) -> None:
    table = read_table(write_table(rows("cv", range(1)), tmp_path / "a.parquet"))
    column = {
        "arrow.uuid": pa.array([b"x" * 16], pa.uuid()),
        "arrow.opaque": pa.ExtensionArray.from_storage(
            pa.opaque(pa.string(), "os.system", "true"), pa.array(["touch /tmp/a"])
        ),
        "arrow.fixed_shape_tensor": pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2]], pa.list_(pa.int32(), 2))
        ),
    }[name]
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), column)
    for hostile in (column, lists):
        place = table.schema.get_field_index("source")
        pq.write_table(table.set_column(place, "source", hostile), tmp_path / "b.parquet")
        with pytest.raises(SchemaError, match=r"The column `source` of .* has the type"):
            read_table(tmp_path / "b.parquet")


def test_registered_types_with_damaged_metadata_are_refused(tmp_path: Path) -> None:
    table = read_table(write_table(rows("cv", range(1)), tmp_path / "a.parquet"))
    place = table.schema.get_field_index("source")
    metadata = {
        b"ARROW:extension:name": b"datasets.features.features.Array2DExtensionType",
        b"ARROW:extension:metadata": b'{"shape": [1]}',
    }
    schema = table.schema.set(place, table.schema.field(place).with_metadata(metadata))
    pq.write_table(table.cast(schema), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match="is not a complete Parquet file"):
        read_table(tmp_path / "b.parquet")


def test_columns_have_different_names(tmp_path: Path) -> None:
    table = read_table(write_table(rows("cv", range(1)), tmp_path / "a.parquet"))
    twice = pa.table([*table.columns, table["id"]], names=[*table.schema.names, "id"])
    pq.write_table(twice, tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"The column `id` of .* occurs twice"):
        read_table(tmp_path / "b.parquet")
