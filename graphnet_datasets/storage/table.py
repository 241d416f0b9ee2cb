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
from ..errors import (
    DatasetNotFoundError,
    FormatVersionError,
    GraphNetError,
    SchemaError,
    raises_only,
)
from ..sample import Sample
from ..schema import GRAPHS_SCHEMA, SCHEMA_VERSION, Table, sample_to_row
from ..schema.tables import GRAPHS

ROW_GROUP_SIZE = GRAPHS.row_group_size

COMPRESSION_LEVEL = 9
"""Level of zstd compression; files are written once and read often (see docs/format.md)."""

METADATA_KEY = b"graphnet_datasets"


@raises_only(SchemaError)
def write_table(items: Iterable[Sample | Mapping[str, Any]], path: str | os.PathLike[str]) -> Path:
    """Write samples, or rows, to one Parquet file and return its path.

    Samples get their derived columns; rows are written unchanged, with null for missing derived
    columns. At most one row group is in memory. The file appears under its name when it is
    complete. Equal items give equal bytes.

    Raises:
        SchemaError: a row has an unknown column, or a value of a wrong type.

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
    """Write Arrow tables with the columns of `table` to one file, as `write_table` does.

    Each table of an iterable starts a row group; one table is in memory at a time.
    """
    return _write([tables] if isinstance(tables, pa.Table) else tables, path, table)


def to_arrow(rows: Sequence[Mapping[str, Any]], table: Table = GRAPHS) -> pa.Table:
    """Return rows as an Arrow table with the columns of `table`.

    Raises:
        SchemaError: a value does not match the type of its column.
    """
    try:
        return pa.Table.from_pylist(rows, table.schema.remove_metadata())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        names = ", ".join(f"`{row.get('id')}`" for row in rows[:3])
        reason = str(error).rstrip(".")
        raise SchemaError(
            f"A row among {names} … does not match the columns of the table: {reason}. Correct "
            "its values."
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
        raise DatasetNotFoundError(f"The file `{path}` does not exist. Check the path.")
    try:
        # An open file, because pyarrow derives partition columns from paths such as `a=b`.
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
    """Read an open Parquet file as `read_table` does; `name` is used in messages.

    Raises:
        SchemaError, FormatVersionError: see `check_file`.
    """
    check_schema(file, name)
    try:
        return pq.read_table(file, columns=columns, filters=filters)
    except (pa.ArrowInvalid, OSError) as error:
        raise unreadable(name, error) from error


def check_file(path: str | os.PathLike[str]) -> pa.Schema:
    """Check that this release can read a Parquet file, and return its schema.

    For most files only the footer is read.

    Raises:
        DatasetNotFoundError: the file does not exist.
        SchemaError: the file is not a complete Parquet file.
        DecodedSizeError: its data exceeds the size limit of `decoding`.
        FormatVersionError: the file has another format version.
    """
    if not Path(path).is_file():
        raise DatasetNotFoundError(f"The file `{path}` does not exist. Check the path.")
    return check_schema(path, path)


def check_schema(file: Any, name: str | os.PathLike[str], *, is_remote: bool = False) -> pa.Schema:
    """Check a path or an open file as `check_file` does; `name` is used in messages.

    For a file that `is_remote`, only the footer is read.
    """
    try:
        check_parquet(file, name, is_remote=is_remote)
        schema = pq.read_schema(file)
    except GraphNetError:
        raise
    # Types that other packages register with Arrow raise the last two.
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise unreadable(name, error) from error
    _check_columns(schema, name)
    version = _version_of(schema)
    if version is not None and version != SCHEMA_VERSION:
        raise FormatVersionError(
            f"`{name}` has format version {version}; this library reads {SCHEMA_VERSION}. Install "
            f"the release of `graphnet-datasets` that reads version {version}, or create the file "
            "again with this release."
        )
    return schema


def _check_columns(schema: pa.Schema, name: object) -> None:
    """Raise if a column's name occurs twice, or if its type belongs to an extension of Arrow."""
    names = set()
    for field in schema:
        if field.name in names or _is_extended(field.type):
            problem = "occurs twice" if field.name in names else f"has the type `{field.type}`"
            raise SchemaError(
                f"The column `{field.name}` of `{name}` {problem}. Columns have different names "
                "and contain numbers, text, bytes, lists and structs: remove or convert the column."
            )
        names.add(field.name)


def _is_extended(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return True
    return any(_is_extended(kind.field(place).type) for place in range(kind.num_fields))


def unreadable(path: str | os.PathLike[str], error: Exception) -> SchemaError:
    """Return the error for a damaged or inaccessible file."""
    reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
    if isinstance(error, PermissionError):
        return SchemaError(f"No permission to read `{path}`. Ask its owner for access.")
    return SchemaError(
        f"`{path}` is not a complete Parquet file: {reason}. Download or write it again."
    )


def _version_of(schema: pa.Schema) -> int | None:
    try:
        metadata = load_json((schema.metadata or {})[METADATA_KEY], "the metadata of a table")
        return int(metadata["schema_version"])
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _write(tables: Iterable[pa.Table], path: str | os.PathLike[str], table: Table = GRAPHS) -> Path:
    """Write tables to a file, which appears under its name when it is complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replaced(path) as place,
        place.open("xb") as file,
        _open_writer(file, table) as writer,
    ):
        for arrow_table in tables:
            # A schema may forbid nulls, which features of `datasets` cannot express.
            fitting = (
                arrow_table
                if arrow_table.schema.equals(writer.schema)
                else arrow_table.cast(writer.schema)
            )
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
        # Operand and name lists repeat per layer. zstd finds such sequences in plain values, but
        # not in dictionary indices: a graph of 10,000 operators takes 48 kB instead of 74, tables
        # of smaller graphs and of parts 6 to 17 % less.
        use_dictionary=not table.holds_samples,
        write_page_index=True,
        # pyarrow's annotation is bool only; its documentation also allows options.
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
