"""The tables of tuners: operators of graphs, and measurements of their schedules."""

from __future__ import annotations

from ..schema import Config, Table
from .schema import RECORD_COLUMNS, TASK_COLUMNS

TUNING_TASKS = Table(
    "tuning_tasks",
    "operators to tune",
    TASK_COLUMNS,
    key="task_id",
    label="task_name",
    scalars=("schema_version", "task_id", "task_name", "family", "pipeline", "flops", "bytes"),
    counted_by=("family",),
    order=("family", "flops", "task_id"),
    listed=("task_id", "task_name", "family", "arg_shapes", "flops", "bytes"),
    row_group_size=100,  # a workload takes tens of kilobytes
)

TUNING_RECORDS = Table(
    "tuning_records",
    "measurements of schedules",
    RECORD_COLUMNS,
    key="record_id",
    label="record_id",
    scalars=(
        *("schema_version", "record_id", "task_id", "run_id", "tuner", "origin", "trial", "seed"),
        *("status", "device", "mcpu", "num_threads"),
    ),
    counted_by=("tuner", "status"),
    order=("task_id", "run_id", "trial"),
    listed=("task_id", "tuner", "trial", "status", "times_ms", "trial_s", "mcpu", "num_threads"),
)

CONFIGS = (
    Config("tuning_tasks", TUNING_TASKS, "operators of the graphs, as tuners get them"),
    Config("tuning_records", TUNING_RECORDS, "measurements of schedules of these operators"),
)
"""The configs of this package."""
