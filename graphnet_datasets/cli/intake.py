"""Inputs of commands that add rows to a repository: tables, datasets, samples, records."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import temporary_directory
from ..errors import SampleError, SchemaError
from .counting import show_count

if TYPE_CHECKING:
    import pyarrow as pa

    from ..sample import Sample
    from ..schema import Table
    from ..storage.importing import FolderOutcome, ImportReport


def table_of(path: Path) -> Table:
    """Return the table that the rows of a file or directory belong to.

    A dataset that contains graphs counts as a table of graphs.

    Raises:
        SchemaError: a directory contains rows of several other tables.
    """
    from ..benchmark.records.records import PARTS_NAME, TABLE_NAME
    from ..schema.tables import GRAPHS, RUNS, table_of_schema
    from ..storage.table import check_file

    if (path / TABLE_NAME).is_file() or (path / PARTS_NAME).is_dir():
        return RUNS
    files = _files_at(path)
    tables = {table.name: table for table in (table_of_schema(check_file(file)) for file in files)}
    if not tables or GRAPHS.name in tables:
        return GRAPHS
    if len(tables) > 1:
        raise SchemaError(
            f"`{path}` contains {' and '.join(table.rows for table in tables.values())}. Push each "
            "kind with its own command."
        )
    (table,) = tables.values()
    return table


def _files_at(path: Path) -> list[Path]:
    """Return a file, or the Parquet files in a directory.

    Raises:
        UnsafePathError: a link leads from a file out of the directory.
    """
    from ..paths import check_target

    if path.is_file():
        return [path]
    files = sorted(path.rglob("*.parquet"))
    for file in files:
        check_target(path, file)
    return files


def own_config(table: Table) -> str:
    """Return the config of a table that is not `graphs`."""
    from ..schema.tables import CONFIGS

    return next(config.name for config in CONFIGS.values() if config.table is table)


def rows_of(path: Path, table: Table) -> pa.Table:
    """Return the rows of a file or directory that holds one table other than `graphs`."""
    import pyarrow as pa

    from ..benchmark.records.records import read_runs
    from ..schema.tables import RUNS
    from ..storage.table import read_table

    if table is RUNS:
        return read_runs(path)
    files = _files_at(path)
    tables = [read_table(file) for file in files]
    return pa.concat_tables(tables, promote_options="default")  # by name: files may differ in age


def holds_directories(path: Path) -> bool:
    """Return whether a path is a directory that contains GraphNet samples."""
    return path.is_dir() and next(path.rglob("graph_net.json"), None) is not None


def samples_in(path: Path) -> Iterator[Sample | Mapping[str, Any]]:
    """Yield the rows of a table, or of the default config of a dataset directory."""
    from datasets.utils import tqdm

    if path.is_file():
        yield from tqdm(_rows(path), desc="Reading", unit="graph")
    else:
        from ..schema import ALL
        from ..storage.layout import read_layout

        splits_by_config = read_layout(path).configs
        splits = splits_by_config.get(ALL) or next(iter(splits_by_config.values()))
        for file in (file for files in splits.values() for file in files):
            yield from tqdm(_rows(file), desc=f"Reading {file.name}", unit="graph")


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..storage.table import check_file, unreadable

    check_file(path)
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=20):
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise unreadable(path, error) from error


@contextlib.contextmanager
def read_directories(root: Path) -> Iterator[ImportReport]:
    """Import GraphNet directories into a temporary table that exists within the block."""
    from ..storage.importing import import_directories

    with (
        temporary_directory("graphnet-push-") as directory,
        show_count("Reading", "directories") as count,
    ):
        out = Path(directory) / "graphs.parquet"
        # `push_samples` reports and leaves out duplicates itself.
        yield import_directories(root, out, keeps_duplicates=True, on_progress=count)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[tuple[Path, list[FolderOutcome]]]:
    """Yield a table or dataset with the graphs of a path, and the directories that failed.

    Raises:
        SampleError: none of the sample directories can be read.
    """
    if not holds_directories(path):
        yield path, []
        return
    with read_directories(path) as read:
        failures = read.failures
        if read.out is None:
            raise SampleError(
                f"None of the {len(failures)} sample directories in `{path}` can be read. The "
                f"first, `{failures[0].path}`: {failures[0].reason}"
            )
        yield read.out, failures
