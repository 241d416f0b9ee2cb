"""Tasks and measurements as tables: written as a dataset, read with invalid rows left out.

A dataset stores them in the configs `tuning_tasks` and `tuning_records`. Like every table, they are
read from a directory, the embedded dataset or the Hub, and pushed with `graphnet push`.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import DatasetNotFoundError, TuningError, raises_only
from ..schema import SCHEMA_VERSION, Table
from ..storage.layout import write_readme
from ..storage.loading import DEFAULT_NAME, load_dataset
from ..storage.local_rows import read_local_rows
from ..storage.shards import write_shards
from ..storage.staging import Staging
from ..storage.table import to_arrow
from ..terminal import counted
from ..verbosity import hidden_progress_bars
from .measurement import Measurement
from .tables import TUNING_RECORDS, TUNING_TASKS
from .task import Task, task_key

_BATCH = 500
_FEATURES = ("features", "machine_code", "machine_code_set")


@dataclasses.dataclass(frozen=True)
class TuningRecords:
    """Tasks by id, their measurements, and counts of skipped rows by reason.

    >>> TuningRecords({}, (), {"unknown task": 2}).skipped_text
    '2 rows skipped: unknown task (2)'
    """

    tasks: Mapping[str, Task]
    measurements: tuple[Measurement, ...]
    skipped: Mapping[str, int]

    @property
    def skipped_text(self) -> str:
        """The reasons and counts in one line for a terminal, "" if no row was skipped."""
        if not self.skipped:
            return ""
        reasons = ", ".join(f"{reason} ({count})" for reason, count in self.skipped.items())
        return f"{counted(sum(self.skipped.values()), 'row')} skipped: {reasons}"

    def of_task(self, task_id: str) -> list[Measurement]:
        """Return the measurements of one task, in the order of the table."""
        return [row for row in self.measurements if row.task_id == task_id]


@raises_only(TuningError)
def read_tasks(dataset: str | os.PathLike[str]) -> TuningRecords:
    """Return the tasks of a dataset, without measurements.

    Rows whose id is not the hash of their workload and target are skipped and counted.

    Raises:
        DatasetNotFoundError: the dataset does not exist, or has no tasks.
    """
    skipped: collections.Counter[str] = collections.Counter()
    tasks: dict[str, Task] = {}
    for row in _rows(dataset, TUNING_TASKS):
        try:
            task = Task.from_row(row)
        except TuningError:
            skipped["not a task"] += 1
            continue
        if task.task_id != task_key(task.workload_json, task.target_json):
            skipped["id does not match workload and target"] += 1
        else:
            tasks.setdefault(task.task_id, task)
    return TuningRecords(tasks, (), dict(skipped))


@raises_only(TuningError)
def read_records(dataset: str | os.PathLike[str], *, with_features: bool = True) -> TuningRecords:
    """Return the tasks and measurements of a dataset.

    Skips and counts invalid rows: not a measurement, a repeated id, a trace that does not match
    its hash, or an unknown task.

    Raises:
        DatasetNotFoundError: the dataset does not exist, or has no tasks or no records.
    """
    task_records = read_tasks(dataset)
    skipped = collections.Counter(task_records.skipped)
    measurements: dict[str, Measurement] = {}
    columns = None  # all, since files of older releases may lack some
    if not with_features:
        columns = [name for name in TUNING_RECORDS.schema.names if name not in _FEATURES]
    for row in _rows(dataset, TUNING_RECORDS, columns):
        try:
            measurement = Measurement.from_row(row)
        except TuningError:
            skipped["not a measurement"] += 1
            continue
        if measurement.task_id not in task_records.tasks:
            skipped["unknown task"] += 1
        elif measurement.trace_hash != row["trace_hash"]:
            skipped["trace does not match its hash"] += 1
        elif measurement.record_id in measurements:
            skipped["repeated id"] += 1
        else:
            measurements[measurement.record_id] = measurement
    return TuningRecords(task_records.tasks, tuple(measurements.values()), dict(skipped))


def write_tuning(
    target: str | os.PathLike[str], tasks: Iterable[Task], measurements: Iterable[Measurement] = ()
) -> Path:
    """Write a dataset directory of tasks and, if there are any, measurements.

    The directory appears under its name when it is complete.

    Raises:
        DatasetExistsError: the target already exists.
    """
    staging = Staging(Path(target), "tuning")
    staging.check_free()
    with staging.hold():
        staged = staging.new_place()
        fill_tuning(staged, tasks, measurements)
        staging.publish(staged)
    return Path(target)


def fill_tuning(
    directory: Path, tasks: Iterable[Task], measurements: Iterable[Measurement]
) -> None:
    """Write the tables of a dataset into an unpublished directory."""
    ordered = sorted(tasks, key=lambda task: (task.family, task.flops, task.task_id))
    for table, rows in (
        (TUNING_TASKS, (task.to_row() for task in ordered)),
        (TUNING_RECORDS, (row.to_row() for row in measurements)),
    ):
        write_shards(_tables(rows, table), directory / table.name, "train", table=table)
    write_readme(directory)


def _tables(rows: Iterable[Mapping[str, Any]], table: Table) -> Iterator[pa.Table]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append({**row, "schema_version": SCHEMA_VERSION})
        if len(batch) == _BATCH:
            yield to_arrow(batch, table)
            batch = []
    if batch:
        yield to_arrow(batch, table)


def _rows(
    dataset: str | os.PathLike[str], table: Table, columns: Sequence[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    place = _place_of(dataset, table)
    try:
        if isinstance(place, Path) and place.is_dir():
            yield from read_local_rows(place, table.name, columns=columns)
            return
        with hidden_progress_bars():
            rows: Any = load_dataset(
                place, table.name, split="all", columns=None if columns is None else [*columns]
            )
    except DatasetNotFoundError as error:
        raise DatasetNotFoundError(
            f"`{dataset}` contains no {table.rows}: {error} Write tasks with `graphnet tasks` and "
            "records with `graphnet tune`."
        ) from error
    yield from rows


def _place_of(dataset: str | os.PathLike[str], table: Table) -> str | os.PathLike[str]:
    """Return a path if the name is a directory with such a table, even without a slash."""
    is_name = isinstance(dataset, str) and dataset != DEFAULT_NAME
    return Path(dataset) if is_name and (Path(dataset) / table.name).is_dir() else dataset
