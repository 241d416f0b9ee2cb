"""Parquet files of the `graphs` table."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ..analysis.columns import derived_columns
from ..atomic import replaced
from ..decoding import check_parquet, load_json
from ..errors import DatasetNotFoundError, FormatVersionError, SchemaError, raises_only
from ..sample import Sample
from ..schema import GRAPHS_SCHEMA, SCHEMA_VERSION, Table, sample_to_row
from ..schema.tables import GRAPHS

ROW_GROUP_SIZE = GRAPHS.row_group_size

COMPRESSION_LEVEL = 9
"""Of zstd; files are written once and read often (figures: docs/format.md)."""

METADATA_KEY = b"graphnet_datasets"


@raises_only(SchemaError)
def write_table(items: Iterable[Sample | Mapping[str, Any]], path: str | os.PathLike[str]) -> Path:
    """Write samples, or rows, to one Parquet file and return its path.

    Samples get their derived columns; rows are written as they are, with null for a missing derived
    column. Items are taken one row group at a time. The file appears under its name only when it is
    complete. Equal items give equal bytes.

    Raises:
        SchemaError: a row has a column that the table lacks, or a value of another type.

    >>> import tempfile
    >>> from graphnet_datasets.sample import Input, Value
    >>> identity = Sample("example/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     read_table(write_table([identity], f"{directory}/a.parquet")).num_rows
    1
    """
    return _write((to_arrow(rows) for rows in _batches(_to_rows(items))), path)


def write_arrow(
    tables: pa.Table | Iterable[pa.Table], path: str | os.PathLike[str], table: Table = GRAPHS
) -> Path:
    """Write Arrow tables with the columns of `table` to one file, as `write_table` writes samples.

    Of several, each begins a row group; they are taken one at a time.
    """
    return _write([tables] if isinstance(tables, pa.Table) else tables, path, table)


def to_arrow(rows: Sequence[Mapping[str, Any]], table: Table = GRAPHS) -> pa.Table:
    """Return rows as an Arrow table with the columns of `table`.

    Raises:
        SchemaError: a value is of another type than its column.
    """
    try:
        return pa.Table.from_pylist(rows, table.schema.remove_metadata())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        names = ", ".join(f"`{row.get('id')}`" for row in rows[:3])
        reason = str(error).rstrip(".")
        raise SchemaError(
            f"A row among {names} … does not fit the columns of the table: {reason}."
        ) from error


@raises_only(SchemaError)
def read_table(
    path: str | os.PathLike[str], columns: list[str] | None = None, filters: Any = None
) -> pa.Table:
    """Read a Parquet file of the `graphs` table, or some of its columns and rows.

    Raises:
        DatasetNotFoundError, SchemaError, FormatVersionError: see `check_file`.
    """
    if not Path(path).is_file():
        raise DatasetNotFoundError(f"There is no file `{path}`.")
    try:
        # A file rather than its path: pyarrow makes columns out of folders that are named `a=b`.
        with Path(path).open("rb") as file:
            return read_open_table(file, path, columns, filters)
    except OSError as error:
        raise unreadable(path, error) from error


def read_open_table(
    file: BinaryIO,
    name: str | os.PathLike[str],
    columns: list[str] | None = None,
    filters: Any = None,
) -> pa.Table:
    """Read a Parquet file that is open, as `read_table` does; `name` is for messages.

    Raises:
        SchemaError, FormatVersionError: see `check_file`.
    """
    check_schema(file, name)
    try:
        return pq.read_table(file, columns=columns, filters=filters)
    except (pa.ArrowInvalid, OSError) as error:
        raise unreadable(name, error) from error


def check_file(path: str | os.PathLike[str]) -> pa.Schema:
    """Return the schema of a Parquet file after checking that it can be read by this release.

    Of most files only the end is read.

    Raises:
        DatasetNotFoundError: there is no such file.
        SchemaError: it is not a complete Parquet file.
        DecodedSizeError: it takes more than the limit of `decoding`.
        FormatVersionError: it was written in another format version.
    """
    if not Path(path).is_file():
        raise DatasetNotFoundError(f"There is no file `{path}`.")
    return check_schema(path, path)


def check_schema(file: Any, name: str | os.PathLike[str], *, is_remote: bool = False) -> pa.Schema:
    """Do as `check_file` for a path, or a file that is open; `name` is for messages.

    Of a file that `is_remote` only the end is read.
    """
    try:
        check_parquet(file, name, is_remote=is_remote)
        schema = pq.read_schema(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise unreadable(name, error) from error
    version = _version_of(schema)
    if version is not None and version != SCHEMA_VERSION:
        raise FormatVersionError(
            f"`{name}` has format version {version}; this library reads {SCHEMA_VERSION}. Install "
            f"the release of `graphnet-datasets` that reads version {version}, or make the file "
            "again with this one."
        )
    return schema


def unreadable(path: str | os.PathLike[str], error: Exception) -> SchemaError:
    """Return the error that says that a file is damaged."""
    reason = str(error).splitlines()[0].rstrip(".")
    if isinstance(error, PermissionError):
        return SchemaError(f"You may not read `{path}`. Ask its owner for the right to.")
    return SchemaError(
        f"`{path}` is not a complete Parquet file: {reason}. Fetch it or write it again."
    )


def _version_of(schema: pa.Schema) -> int | None:
    try:
        metadata = load_json((schema.metadata or {})[METADATA_KEY], "the metadata of a table")
        return int(metadata["schema_version"])
    except (KeyError, ValueError, TypeError):
        return None


def _write(tables: Iterable[pa.Table], path: str | os.PathLike[str], table: Table = GRAPHS) -> Path:
    """Write tables one after another; the file appears under its name when it is complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replaced(path) as place,
        place.open("xb") as file,
        _open_writer(file, table) as writer,
    ):
        for each in tables:
            # A schema may forbid nulls, which features of `datasets` know nothing of.
            fitting = each if each.schema.equals(writer.schema) else each.cast(writer.schema)
            writer.write_table(fitting, row_group_size=table.row_group_size)
    return path


def _open_writer(file: Any, table: Table) -> pq.ParquetWriter:
    import datasets.config

    features = table.features().arrow_schema
    metadata = {**(features.metadata or {}), **(table.schema.metadata or {})}
    return pq.ParquetWriter(
        file,
        features.with_metadata(metadata),
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        # Lists of operands and names repeat as sequences, layer by layer, which zstd finds in plain
        # values and not in indices of a dictionary: a graph of 10,000 operators takes 48 kB
        # instead of 74, the tables of smaller graphs and of parts 6 to 17 % less.
        use_dictionary=not table.holds_samples,
        write_page_index=True,
        # The annotation of pyarrow allows only true or false; its documentation, options too.
        use_content_defined_chunking=datasets.config.DEFAULT_CDC_OPTIONS,  # pyright: ignore[reportArgumentType]
    )


def _to_rows(items: Iterable[Sample | Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if isinstance(item, Sample):
            yield sample_to_row(item, derived_columns(item))
        else:
            yield _checked(item)


def _checked(row: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = sorted(set(row) - set(GRAPHS_SCHEMA.names))
    if unknown:
        raise SchemaError(
            f"Row `{row.get('id')}` has the column `{unknown[0]}`, which the table lacks. Its "
            f"columns are {', '.join(GRAPHS_SCHEMA.names)}."
        )
    return row


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    rows = iter(rows)
    while batch := list(itertools.islice(rows, ROW_GROUP_SIZE)):
        yield batch
