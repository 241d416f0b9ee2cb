"""Collections and runs that were stopped when their dataset was in its place already."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from graphnet_datasets.errors import DatasetExistsError, DatasetNotFoundError
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.tuning import TrialStatus
from graphnet_datasets.tuning.collecting import collect_tasks
from graphnet_datasets.tuning.records import fill_tuning, write_tuning
from graphnet_datasets.tuning.running import TaskChoice, _tasks_of, tune_samples

from .live import needs_tvm
from .test_records import measured, task

TASKS = [task(8), dataclasses.replace(task(16), family="conv2d", structural_hash="18")]


def published(target: Path, work: str, report: str, text: str, rows: object = ()) -> None:
    """Leave a dataset in its place, and its hidden directory beside it."""
    staging = Staging(target, work)
    staging.parts.mkdir(parents=True)
    (staging.parts / "one.arrow").write_bytes(b"a part")
    staged = staging.new_place()
    fill_tuning(staged, TASKS, rows)  # type: ignore[arg-type]
    (staged / report).write_text(text)
    staging.publish(staged)


@needs_tvm
def test_a_collection_of_tasks_that_was_stopped_while_tidying_is_finished(tmp_path: Path) -> None:
    lines = [{"id": "test/one", "num_tasks": 2}, {"id": "test/two", "reason": "too large"}]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    published(tmp_path / "mine", "tasks", "tasks-report.jsonl", text)
    done = collect_tasks("cv", tmp_path / "mine", jobs=1)
    assert {each.task_id for each in done.tasks} == {each.task_id for each in TASKS}
    assert done.num_resumed == 2 and [each.reason for each in done.refused] == ["too large"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(DatasetExistsError, match=r"exists\. Choose another path"):
        collect_tasks("cv", tmp_path / "mine", jobs=1)


@needs_tvm
def test_a_run_that_was_stopped_while_tidying_is_finished(tmp_path: Path) -> None:
    rows = [measured(TASKS[0], 0), measured(TASKS[1], 1, TrialStatus.CRASH)]
    text = json.dumps({"seconds": 12.5, "skipped": {}, "ended": {TASKS[1].task_id: "it failed"}})
    published(tmp_path / "mine", "tuning", "tune-report.json", text, rows)
    done = tune_samples("cv", tmp_path / "mine")
    assert len(done.result.rows) == 2 and list(done.result.best) == [TASKS[0].task_id]
    assert "2 measurements of 2 tasks" in done.summary() and "it failed" in done.summary()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(DatasetExistsError, match=r"exists\. Choose another path"):
        tune_samples("cv", tmp_path / "mine")


@pytest.mark.parametrize("name", ["tasks", "./tasks"])
def test_a_directory_of_tasks_may_be_named_without_a_slash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tuning(tmp_path / "tasks", TASKS)
    staging = Staging(tmp_path / "tuned", "tuning")
    found = _tasks_of(name, staging, 1, "graphnet", None, None)
    assert {each.task_id for each in found} == {each.task_id for each in TASKS}


@needs_tvm
def test_a_config_is_not_a_directory_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tuning(tmp_path / "cv", TASKS)
    staging = Staging(tmp_path / "tuned", "tuning")
    with pytest.raises(DatasetNotFoundError, match="nowhere"):
        _tasks_of("cv", staging, 1, tmp_path / "nowhere", None, None)


def test_the_chosen_tasks_are_shared_out_over_families() -> None:
    chosen = TaskChoice(max_tasks=2).choose([*TASKS, task(32)])
    assert [each.family for each in chosen] == ["matmul", "conv2d"]
    assert TaskChoice(min_flops=10**9).choose(TASKS) == []
