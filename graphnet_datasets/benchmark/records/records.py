"""Run records on disk: one durable file per record, merged into a table.

A directory of runs contains `runs.parquet` and, during a run, one `parts/<run_id>.parquet` per
record. Parts are written atomically. If the process is killed, only an unwritten record is lost,
and concurrent readers see complete records.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...atomic import is_abandoned, replaced
from ...errors import FormatVersionError, RunError, SchemaError
from ...sample import Sample
from ...schema import RUNS_SCHEMA, SCHEMA_VERSION
from ...schema.run_files import (
    find_run_files,
    read_run_file,
    with_later_columns,
    without_copies,
)

TABLE_NAME = "runs.parquet"
PARTS_NAME = "parts"
LOCK_NAME = ".lock"
COMPACT_EVERY = 256
"""The number of parts after which they are merged into the table during a run."""


def sample_digest(sample: Sample) -> str:
    """Return a hash of everything a run of `sample` depends on, including its stored elements.

    Unlike the signature hash, it depends on the id, which seeds the inputs, and on the recorded
    statistics.
    """
    digest = hashlib.blake2b(digest_size=12)
    fields = (
        sample.id, sample.framework, sample.inputs, sample.ops, sample.outputs, sample.symbols,
        sample.constraints,
    )  # fmt: skip
    digest.update(repr(fields).encode(errors="surrogatepass"))
    if any(value.signal for value in sample.inputs):
        digest.update(repr([value.signal for value in sample.inputs]).encode())
    for value in sample.inputs:
        digest.update(b"-" if value.data is None else hashlib.blake2b(value.data).digest())
    return digest.hexdigest()


def hash_json(value: Any) -> str:
    """Return a hash of a JSON-compatible value, independent of the order of keys.

    >>> hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def make_run_id(sample: Sample, **settings: Any) -> str:
    """Return the id of a run, a hash of the sample and the settings.

    >>> from graphnet_datasets.sample import Sample
    >>> sample = Sample("a", "torch", "other", (), (), ())
    >>> make_run_id(sample, compiler="x") == make_run_id(sample, compiler="x")
    True
    >>> make_run_id(sample, compiler="x") == make_run_id(sample, compiler="y")
    False
    """
    return hash_json([sample_digest(sample), settings])


class RunStore:
    """The records of a directory, to which runs are added one by one.

    Several processes may add to one directory.

    Raises:
        RunError: the directory cannot be created or written to.
        SchemaError: its content cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._parts = self.path / PARTS_NAME
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            self._lock_path = self._parts / LOCK_NAME
            self._lock_path.touch()
        except OSError as error:
            raise RunError(
                f"The directory `{self.path}` for run records cannot be written: "
                f"{error.strerror}. Choose another one with `out`."
            ) from error
        self._num_parts = 0
        self.compact()
        self._ids = set(self._read_ids())

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._ids

    def append(self, record: Mapping[str, Any]) -> None:
        """Store one record; it is on disk when this method returns.

        Raises:
            RunError: the record cannot be written.
            SchemaError: the record does not match `RUNS_SCHEMA`.
        """
        run_id = record["run_id"]
        table = rows_to_table([record])
        try:
            _write_parquet(table, self._parts / f"{run_id}.parquet")
        except OSError as error:
            raise RunError(
                f"A run record cannot be written to `{self.path}`: {error.strerror}."
            ) from error
        self._ids.add(run_id)
        self._num_parts += 1
        if self._num_parts >= COMPACT_EVERY:
            self.compact()

    def compact(self) -> None:
        """Merge the parts into the table."""
        with self._locked():
            parts = sorted(self._parts.glob("*.parquet"))
            for place in self._parts.glob(".*.tmp"):
                if is_abandoned(place):
                    place.unlink(missing_ok=True)
            if parts:
                _write_parquet(read_runs(self.path), self.path / TABLE_NAME)
                for part in parts:
                    part.unlink()
        self._num_parts = 0

    def table(self, run_ids: Iterable[str]) -> pa.Table:
        """Return the records with the given ids, in that order; missing ids are skipped."""
        self.compact()
        table = self._whole()
        index_of = {run_id: index for index, run_id in enumerate(table["run_id"].to_pylist())}
        indices = [index_of[run_id] for run_id in run_ids if run_id in index_of]
        return table.take(pa.array(indices, pa.int64()))

    def rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return some columns of all records, ordered by start time."""
        table = self._whole().sort_by([("started_at", "ascending")])
        return table.select(list(columns)).to_pylist()

    def _whole(self) -> pa.Table:
        path = self.path / TABLE_NAME
        return _read_file(path) if path.exists() else RUNS_SCHEMA.empty_table()

    def _read_ids(self) -> list[str]:
        return self._whole()["run_id"].to_pylist()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock_path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def read_runs(path: str | os.PathLike[str]) -> pa.Table:
    """Return the run records at `path`, a directory or a Parquet file, ordered by start time.

    Raises:
        DatasetNotFoundError: there are no records.
        FormatVersionError: the records have another format version.
        SchemaError: a file is not a complete Parquet file or has other columns.
    """
    table = pa.concat_tables([_read_file(file) for file in find_run_files(Path(path))])
    table = without_copies(table)  # duplicates of merged parts, left by a killed process
    return table.sort_by([("started_at", "ascending"), ("run_id", "ascending")])


def write_runs(runs: pa.Table | Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Atomically write run records to one Parquet file.

    Raises:
        SchemaError: the records do not match `RUNS_SCHEMA`.
    """
    table = runs if isinstance(runs, pa.Table) else rows_to_table(runs)
    _write_parquet(_checked(table, "The run records"), Path(path))


def rows_to_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows with all columns of `RUNS_SCHEMA` as a table.

    Raises:
        SchemaError: a column is missing, unknown or of another type.
    """
    rows = list(rows)
    names = set(RUNS_SCHEMA.names)
    for row in rows:
        if row.keys() != names:
            odd = ", ".join(f"`{name}`" for name in sorted(names ^ row.keys()))
            raise SchemaError(
                f"A run record does not match the columns of the `runs` table: {odd} missing or "
                "unknown. Start from `schema.empty_run()`."
            )
    try:
        return pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise SchemaError(f"A run record does not fit the `runs` table: {error}") from error


def to_plain(value: Any) -> Any:
    """Return settings as JSON-compatible values: dataclasses as objects, infinities as strings.

    >>> to_plain({"limit": math.inf, "names": ("a",)})
    {'limit': 'inf', 'names': ['a']}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _read_file(path: Path) -> pa.Table:
    return _checked(with_later_columns(read_run_file(path)), f"`{path}`")


def _checked(table: pa.Table, where: str) -> pa.Table:
    metadata = (table.schema.metadata or {}).get(b"graphnet_datasets")
    if metadata is not None and table.num_rows:
        version = table["schema_version"][0].as_py()
        if version != SCHEMA_VERSION:
            raise FormatVersionError(
                f"{where} is of format version {version}, but this library reads version "
                f"{SCHEMA_VERSION}. Install the version of `graphnet-datasets` that wrote it."
            )
    if table.schema.names != RUNS_SCHEMA.names:
        odd = sorted(set(table.schema.names) ^ set(RUNS_SCHEMA.names))
        raise SchemaError(
            f"{where} does not have the columns of the `runs` table (missing or unknown: "
            f"{', '.join(odd) or 'none, but the order differs'})."
        )
    try:
        return table.cast(RUNS_SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"{where} has a column of the wrong type: {error}") from error


def _write_parquet(table: pa.Table, path: Path) -> None:
    with replaced(path, is_durable=True) as place, place.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
