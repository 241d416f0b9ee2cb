"""Files of run records: discovery, reading, and removal of duplicate records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..decoding import check_parquet
from ..errors import DatasetNotFoundError, SchemaError
from ..paths import check_is_regular, check_target
from .runs import LATER_COLUMNS, RUNS_SCHEMA


def find_run_files(path: Path) -> list[Path]:
    """Return the files of run records at `path`: a file, or a directory of them at any depth.

    Other Parquet files in a directory, and hidden directories, are left out. An incomplete file is
    returned, so that reading it raises an error with its name.

    Raises:
        DatasetNotFoundError: there are no files.
        UnsafePathError: a link of a file leads outside of the directory, or a file is a pipe or a
            device.
    """
    if path.is_file():
        return [path]
    tables = sorted(
        file
        for file in path.rglob("*.parquet")
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    for file in tables:
        check_target(path, file)
        check_is_regular(file)
    files = [file for file in tables if _may_hold_runs(file)]
    if not files:
        others = f" The {len(tables)} Parquet files there hold other tables." if tables else ""
        raise DatasetNotFoundError(
            f"There are no run records at `{path}`.{others} Create some with "
            f"`graphnet run … --out {path}`."
        )
    return files


def _may_hold_runs(file: Path) -> bool:
    try:
        names = pq.read_schema(file).names
    except (pa.ArrowInvalid, OSError):
        return True
    is_tuning = "record_id" in names
    return {"sample_id", "status"}.issubset(names) or ("run_id" in names and not is_tuning)


def read_run_file(path: Path) -> pa.Table:
    """Read a Parquet file with any columns.

    Raises:
        SchemaError: the file is not a complete Parquet file.
        DecodedSizeError: its data exceed the size limit of `decoding`.
    """
    try:
        check_parquet(path, path)
        return pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        if path.suffix != ".parquet":
            raise SchemaError(
                f"`{path}` is not a Parquet file. Name the directory or the file that `graphnet "
                "run --out` wrote, or `graphnet` for the records in the package."
            ) from error
        raise SchemaError(
            f"`{path}` is not a complete Parquet file ({error}). Delete it and run again; the "
            "other records are kept."
        ) from error


def with_later_columns(
    table: pa.Table, schema: pa.Schema = RUNS_SCHEMA, later: frozenset[str] = LATER_COLUMNS
) -> pa.Table:
    """Add later columns, filled with null, to a table of an older release.

    Tables that lack another column, or have an unknown column, are returned unchanged.

    >>> older = RUNS_SCHEMA.empty_table().drop_columns(["judged"])
    >>> with_later_columns(older).schema.names == RUNS_SCHEMA.names
    True
    """
    missing = set(schema.names) - set(table.column_names)
    if not missing or missing - later or set(table.column_names) - set(schema.names):
        return table
    columns = [
        pa.nulls(table.num_rows, field.type) if field.name in missing else table[field.name]
        for field in schema
    ]
    return pa.table(columns, schema.names, metadata=table.schema.metadata)


def without_copies(table: pa.Table) -> pa.Table:
    """Keep the last record per `run_id`; records without an id are all kept.

    If a run is killed while merging its parts, a record may be both in the table and in a part.

    >>> without_copies(pa.table({"run_id": ["a", "b", "a"], "n": [1, 2, 3]}))["n"].to_pylist()
    [2, 3]
    """
    if "run_id" not in table.column_names:
        return table
    ids = [run_id or index for index, run_id in enumerate(table["run_id"].to_pylist())]
    last = {run_id: index for index, run_id in enumerate(ids)}
    return table if len(last) == len(ids) else table.take(pa.array(sorted(last.values())))
