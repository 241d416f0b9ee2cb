"""Tasks and measurements written as a dataset and read again."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import DatasetExistsError, DatasetNotFoundError
from graphnet_datasets.schema import CONFIGS
from graphnet_datasets.tuning import (
    Candidate,
    Measurement,
    Origin,
    Task,
    TaskSource,
    TrialStatus,
    task_key,
)
from graphnet_datasets.tuning.records import read_records, read_tasks, write_tuning


def task(number: int) -> Task:
    workload, target = f'{{"workload": {number}}}', '{"kind": "llvm"}'
    return Task(
        task_id=task_key(workload, target),
        workload_json=workload,
        target_json=target,
        task_name=f"fused_matmul_{number}",
        family="matmul",
        arg_shapes=((4, number), (number, 4), ()),
        arg_dtypes=("float32",) * 3,
        flops=32 * number,
        bytes=128,
        sources=(TaskSource("test/one", "0a", 2),),
        structural_hash="17",
        hash_version="0.27",
        pipeline="zero",
        tool_versions={"tvm": "0.27.0"},
    )


def measured(of: Task, number: int, status: TrialStatus = TrialStatus.OK) -> Measurement:
    is_ok = status is TrialStatus.OK
    return Measurement.of(
        Candidate(of.task_id, f"[[{number}], []]", Origin.RANDOM, predicted=0.5),
        status,
        times_ms=(1.5, 2.0, 1.0) if is_ok else (),
        error="" if is_ok else "it took 10 s",
        features=np.arange(6, dtype=np.float32).reshape(2, 3) if is_ok else None,
        record_id=f"{of.task_id}-{number}",
        trial=number,
        anchor_ms=(0.25,),
        load_average=0.5,
        tool_versions={"tvm": "0.27.0", "llvm": "20"},
        created_at=datetime.datetime(2026, 1, 2, 3, 4, 5, 678, datetime.UTC),
    )


def test_written_records_are_read_back(tmp_path: Path) -> None:
    tasks = [task(8), task(16)]
    rows = [measured(tasks[0], 0), measured(tasks[1], 1, TrialStatus.TIMEOUT)]
    out = write_tuning(tmp_path / "pool", tasks, rows)
    found = read_records(out)
    assert found.tasks == {each.task_id: each for each in tasks} and not found.skipped
    assert [each.to_row() for each in found.measurements] == [each.to_row() for each in rows]
    assert found.of_task(tasks[1].task_id)[0].error == "it took 10 s"
    assert read_records(out, with_features=False).measurements[0].features is None
    with pytest.raises(DatasetExistsError):
        write_tuning(out, tasks)


def test_they_are_configs_that_all_leaves_out(tmp_path: Path) -> None:
    out = write_tuning(tmp_path / "pool", [task(8)], [measured(task(8), 0)])
    assert not CONFIGS["tuning_tasks"].is_in_all and not CONFIGS["tuning_records"].is_in_all
    row = load_dataset(out, "tuning_records", split="train")[0]
    assert row["times_ms"] == [1.5, 2.0, 1.0]
    assert row["created_at"] == datetime.datetime(2026, 1, 2, 3, 4, 5, 678, datetime.UTC)
    with pytest.raises(DatasetNotFoundError):
        load_dataset(out, "all")


def test_rows_that_cannot_be_used_are_left_out_by_count(tmp_path: Path) -> None:
    good, other = task(8), task(16)
    forged = dataclasses.replace(task(4), task_id="0" * 32)
    rows = [measured(good, 0), measured(good, 0), measured(other, 1), measured(forged, 2)]
    found = read_records(write_tuning(tmp_path / "pool", [good, forged], rows))
    assert [each.record_id for each in found.measurements] == [rows[0].record_id]
    assert found.skipped == {
        "id does not match workload and target": 1,
        "repeated id": 1,
        "unknown task": 2,
    }
    assert found.skipped_text.startswith("4 rows skipped: ")


def test_tasks_alone_are_a_dataset_too(tmp_path: Path) -> None:
    out = write_tuning(tmp_path / "tasks", [task(8)])
    assert list(read_tasks(out).tasks) == [task(8).task_id]
    with pytest.raises(DatasetNotFoundError, match="measurements of schedules"):
        read_records(out)
