"""Tasks and measurements as tables: written as a dataset, read without what is wrong in it.

A dataset holds them in the configs `tuning_tasks` and `tuning_records`; like every table they are
read from a directory, the embedded dataset or the Hub, and pushed by `graphnet push`.
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
from ..schema.tables import TUNING_RECORDS, TUNING_TASKS
from ..storage.layout import write_readme
from ..storage.loading import DEFAULT_NAME, load_dataset
from ..storage.shards import write_shards
from ..storage.staging import Staging
from ..storage.table import to_arrow
from ..terminal import counted
from ..verbosity import hidden_progress_bars
from .measurement import Measurement
from .task import Task, task_key

_BATCH = 500


@dataclasses.dataclass(frozen=True)
class TuningRecords:
    """Tasks by their ids, the measurements of these tasks, and why other rows were left out.

    >>> TuningRecords({}, (), {"its task is not there": 2}).skipped_text
    '2 rows left out: its task is not there (2)'
    """

    tasks: Mapping[str, Task]
    measurements: tuple[Measurement, ...]
    skipped: Mapping[str, int]

    @property
    def skipped_text(self) -> str:
        """A line for a terminal with the reasons and their counts; "" where nothing was skipped."""
        if not self.skipped:
            return ""
        reasons = ", ".join(f"{reason} ({count})" for reason, count in self.skipped.items())
        return f"{counted(sum(self.skipped.values()), 'row')} left out: {reasons}"

    def of_task(self, task_id: str) -> list[Measurement]:
        """Return the measurements of one task, in the order of the table."""
        return [each for each in self.measurements if each.task_id == task_id]


@raises_only(TuningError)
def read_tasks(dataset: str | os.PathLike[str]) -> TuningRecords:
    """Return the tasks of a dataset, without measurements.

    A row whose id is not that of its workload and target is left out, and counted.

    Raises:
        DatasetNotFoundError: there is no such dataset, or it has no tasks.
    """
    skipped: collections.Counter[str] = collections.Counter()
    tasks: dict[str, Task] = {}
    for row in _rows(dataset, TUNING_TASKS):
        try:
            task = Task.from_row(row)
        except TuningError:
            skipped["it is not a task"] += 1
            continue
        if task.task_id != task_key(task.workload_json, task.target_json):
            skipped["its id is not that of its workload and target"] += 1
        else:
            tasks.setdefault(task.task_id, task)
    return TuningRecords(tasks, (), dict(skipped))


@raises_only(TuningError)
def read_records(dataset: str | os.PathLike[str], *, with_features: bool = True) -> TuningRecords:
    """Return tasks and measurements of a dataset.

    What cannot be used is left out by count: rows that are no measurement, that have the id of one
    before, whose trace was changed, or whose task is not there.

    Raises:
        DatasetNotFoundError: there is no such dataset, or it has no tasks or no records.
    """
    found = read_tasks(dataset)
    skipped = collections.Counter(found.skipped)
    measurements: dict[str, Measurement] = {}
    columns = [name for name in TUNING_RECORDS.schema.names if with_features or name != "features"]
    for row in _rows(dataset, TUNING_RECORDS, columns):
        try:
            each = Measurement.from_row(row)
        except TuningError:
            skipped["it is not a measurement"] += 1
            continue
        if each.task_id not in found.tasks:
            skipped["its task is not there"] += 1
        elif each.trace_hash != row["trace_hash"]:
            skipped["its trace is not that of its hash"] += 1
        elif each.record_id in measurements:
            skipped["its id is that of another row"] += 1
        else:
            measurements[each.record_id] = each
    return TuningRecords(found.tasks, tuple(measurements.values()), dict(skipped))


def write_tuning(
    target: str | os.PathLike[str], tasks: Iterable[Task], measurements: Iterable[Measurement] = ()
) -> Path:
    """Write a dataset directory of tasks, and of measurements if there are any.

    It appears under its name when it is complete.

    Raises:
        DatasetExistsError: something is there already.
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
    """Write the tables of a dataset into a directory that nobody reads yet."""
    ordered = sorted(tasks, key=lambda each: (each.family, each.flops, each.task_id))
    for table, rows in (
        (TUNING_TASKS, (each.to_row() for each in ordered)),
        (TUNING_RECORDS, (each.to_row() for each in measurements)),
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
        with hidden_progress_bars():
            rows: Any = load_dataset(
                place, table.name, split="all", columns=None if columns is None else [*columns]
            )
    except DatasetNotFoundError as error:
        raise DatasetNotFoundError(
            f"`{dataset}` holds no {table.rows}: {error} `graphnet tasks` writes tasks, "
            "`graphnet tune` records."
        ) from error
    yield from rows


def _place_of(dataset: str | os.PathLike[str], table: Table) -> str | os.PathLike[str]:
    """Return a directory with such a table as a path, also where its name has no slash."""
    is_name = isinstance(dataset, str) and dataset != DEFAULT_NAME
    return Path(dataset) if is_name and (Path(dataset) / table.name).is_dir() else dataset
