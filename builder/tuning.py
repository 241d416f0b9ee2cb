"""Addition of the tasks and records of a tuning run to the embedded dataset."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.terminal import counted
from graphnet_datasets.tuning.records import fill_tuning, read_records
from graphnet_datasets.tuning.tables import TUNING_RECORDS, TUNING_TASKS

MAX_BYTES = 25 * 2**20
"""Size limit of both tables in the wheel."""


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
                f"The tables of `{pool}` take {size} bytes; at most {MAX_BYTES} may be embedded. "
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
