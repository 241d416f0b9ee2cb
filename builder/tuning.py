"""Addition of the tasks and records of a tuning run to the embedded dataset."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.terminal import counted
from graphnet_datasets.tuning.isolated_space import IsolatedSpace
from graphnet_datasets.tuning.records import TuningRecords, fill_tuning, read_records
from graphnet_datasets.tuning.tables import TUNING_RECORDS, TUNING_TASKS

MAX_BYTES = 25 * 2**20
"""Size limit of both tables in the wheel."""

_BATCH = 64
"""Schedules that are compiled between two writes of the journal."""


def ship(pool: Path, out: Path) -> str:
    """Write the tables of a pool into a dataset directory, and return a summary line.

    Rows are sorted by task, run and trial, so that equal records result in equal files in any order
    of measurement. Tasks without a record are left out. If the tables would be too large, nothing
    is written.

    Raises:
        DatasetNotFoundError: the pool has no tasks or records.
        GraphNetError: a row of the pool cannot be read, or the tables take more than `MAX_BYTES`.
    """
    records = read_records(pool)
    if records.skipped:
        raise GraphNetError(
            f"`{pool}` cannot be shipped: {records.skipped_text}. Remove these rows."
        )
    return _replace(records, out)


def add_machine_code(out: Path, journal: Path, *, on_record: Callable[[int, int], None]) -> str:
    """Compile the schedules of a dataset's records again and store their machine code's features.

    Records that have features of the present version are left as they are. Each result is appended
    to `journal`, from which an interrupted call continues. `on_record` receives the numbers of
    finished and of all records. Returns a summary line.

    Raises:
        DatasetNotFoundError: the dataset has no tasks or records.
        GraphNetError: the tables would take more than `MAX_BYTES`.
    """
    records = read_records(out)
    codes: dict[str, list[float] | None] = dict(read_journal(journal))
    journal.parent.mkdir(parents=True, exist_ok=True)
    with IsolatedSpace() as space:
        waiting = [
            row
            for row in records.measurements
            if row.machine_code_set != space.machine_code_set and row.record_id not in codes
        ]
        number = len(waiting) + len(codes)
        for task in records.tasks.values():
            own = [row for row in waiting if row.task_id == task.task_id]
            if own:
                space.add(task)
            for start in range(0, len(own), _BATCH):
                batch = own[start : start + _BATCH]
                vectors = space.machine_code_of([row.candidate for row in batch])
                for row, vector in zip(batch, vectors, strict=True):
                    codes[row.record_id] = None if vector is None else vector.tolist()
                    append_json(journal, [row.record_id, codes[row.record_id]])
                on_record(len(codes), number)
        rows = [
            dataclasses.replace(
                row,
                machine_code=np.asarray(code, np.float32),
                machine_code_set=space.machine_code_set,
            )
            if (code := codes.get(row.record_id)) is not None
            else row
            for row in records.measurements
        ]
    return _replace(dataclasses.replace(records, measurements=tuple(rows)), out)


def _replace(records: TuningRecords, out: Path) -> str:
    """Replace the tables of tuning of a dataset directory, and return a summary line."""
    rows = sorted(records.measurements, key=lambda row: (row.task_id, row.run_id, row.trial))
    measured = {row.task_id for row in rows}
    tasks = [task for key, task in records.tasks.items() if key in measured]
    names = (TUNING_TASKS.name, TUNING_RECORDS.name)
    with tempfile.TemporaryDirectory(dir=out, prefix=".tuning-") as folder:
        staged = Path(folder)
        fill_tuning(staged, tasks, rows)
        size = sum(path.stat().st_size for path in staged.rglob("*.parquet"))
        if size > MAX_BYTES:
            raise GraphNetError(
                f"The tables of tuning take {size} bytes; at most {MAX_BYTES} may be embedded. "
                "Ship fewer records."
            )
        for name in names:
            shutil.rmtree(out / name, ignore_errors=True)
            (staged / name).replace(out / name)
    write_readme(out)
    statuses = Counter(str(row.status) for row in rows)
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    return (
        f"{counted(len(rows), 'record')} of {counted(len(tasks), 'task')} ({counts}), {size} bytes"
    )


def provenance(out: Path) -> str:
    """Return the section of the card on the origin of the records, or "" without records."""
    if not (out / TUNING_RECORDS.name).is_dir():
        return ""
    tasks = pq.read_table(out / TUNING_TASKS.name, columns=["family"]).to_pylist()
    names = ["task_id", "mcpu", "num_threads", "device", "tool_versions", "status", "created_at"]
    rows = pq.read_table(out / TUNING_RECORDS.name, columns=[*names, "tuner"]).to_pylist()
    families = Counter(row["family"] for row in tasks)
    machines = sorted({f"{row['mcpu']} ({row['num_threads']} threads)" for row in rows})
    versions = sorted(
        {f"{tool['name']} {tool['version']}" for row in rows for tool in row["tool_versions"] or ()}
    )
    days = sorted({row["created_at"].date().isoformat() for row in rows if row["created_at"]})
    statuses = Counter(row["status"] for row in rows)
    return f"""## Records of tuning

`tuning_tasks` contains {len(tasks)} operators of these graphs
({", ".join(f"{count} {name}" for name, count in sorted(families.items()))}), `tuning_records`
{len(rows)} measurements of their schedules
({", ".join(f"{count} {name}" for name, count in statuses.most_common())}) by
{", ".join(sorted({f"`{row['tuner']}`" for row in rows}))}, on {", ".join(machines)},
{" to ".join(dict.fromkeys((days[0], days[-1]))) if days else "at an unknown time"}, with
{", ".join(versions)}. All repetitions are stored. `docs/tuning.md` of the source repository
describes the measurement; `python -m builder tuning POOL` writes these tables. `all` contains
neither.
"""
