"""Tasks and records of tuning beside the graphs of a dataset."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from builder import tuning
from builder.tuning import add_machine_code, provenance, ship
from graphnet_datasets import load_dataset
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import write_table
from graphnet_datasets.tuning import Pool, TrialStatus
from graphnet_datasets.tuning.machine_code import FEATURE_NAMES, MACHINE_CODE_SET
from graphnet_datasets.tuning.records import read_records, write_tuning
from tests.tables import rows
from tests.tuning.live import needs_tvm
from tests.tuning.test_records import measured, task

TASKS = [task(8), dataclasses.replace(task(16), family="conv2d"), task(32)]
ROWS = [
    dataclasses.replace(measured(each, number), run_id="r", mcpu="znver5", tuner="random")
    for number, each in enumerate([*TASKS[:2], *TASKS[:2]])
]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    out = tmp_path / "graphnet"
    write_table(rows("cv", range(1, 4)), out / "cv" / "train-0000.parquet")
    write_readme(out)
    return out


def test_they_stand_beside_the_graphs_with_equal_bytes(dataset: Path, tmp_path: Path) -> None:
    write_tuning(tmp_path / "pool", TASKS, ROWS)
    write_tuning(tmp_path / "turned", TASKS[::-1], ROWS[::-1])
    said = ship(tmp_path / "pool", dataset)
    assert said.startswith("4 records of 2 tasks (4 ok), ")  # the third task has no record
    files = {path: path.read_bytes() for path in dataset.rglob("tuning_*/*.parquet")}
    assert len(files) == 2
    ship(tmp_path / "turned", dataset)
    assert {path: path.read_bytes() for path in dataset.rglob("tuning_*/*.parquet")} == files
    records = load_dataset(dataset, "tuning_records", split="all")
    assert records["task_id"][:] == sorted(records["task_id"][:]) and len(records) == 4
    assert len(load_dataset(dataset, "all", split="all")) == 3  # the graphs alone
    pool = Pool.load(dataset)
    assert len(pool.tasks) == 2 and all(len(pool.rows(each)) == 2 for each in pool.tasks.values())


def test_the_card_says_where_they_are_from(dataset: Path, tmp_path: Path) -> None:
    assert provenance(dataset) == ""
    failed = dataclasses.replace(ROWS[0], status=TrialStatus.CRASH, times_ms=(), record_id="f")
    failed = dataclasses.replace(failed, trace_json="[[9], []]")
    write_tuning(tmp_path / "pool", TASKS, [*ROWS, failed])
    ship(tmp_path / "pool", dataset)
    text = " ".join(provenance(dataset).split())
    assert "2 operators of these graphs (1 conv2d, 1 matmul)" in text
    assert "(4 ok, 1 crash) by `random`, on znver5 (1 threads), 2026-01-02, with" in text


def test_large_or_broken_pools_are_not_shipped(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tuning(tmp_path / "pool", TASKS, ROWS)
    monkeypatch.setattr(tuning, "MAX_BYTES", 1000)
    with pytest.raises(GraphNetError, match="at most 1000 may be embedded"):
        ship(tmp_path / "pool", dataset)
    write_tuning(tmp_path / "broken", TASKS[:1], ROWS)
    with pytest.raises(GraphNetError, match="unknown task"):
        ship(tmp_path / "broken", dataset)
    assert not list(dataset.glob("*tuning*"))


@pytest.mark.slow
@needs_tvm
def test_machine_code_is_added_once_and_an_interrupted_call_continues(tmp_path: Path) -> None:
    records = read_records("graphnet")
    chosen = min(records.tasks.values(), key=lambda task: (task.flops, task.task_id))
    rows = [
        dataclasses.replace(row, machine_code=None, machine_code_set="")
        for row in records.of_task(chosen.task_id)[:3]
    ]
    dataset, journal = tmp_path / "graphnet", tmp_path / "build" / "journal.jsonl"
    write_tuning(dataset, [chosen], rows)
    steps: list[tuple[int, int]] = []
    add_machine_code(dataset, journal, on_record=lambda *step: steps.append(step))
    assert steps == [(3, 3)]
    added = read_records(dataset).measurements
    assert len(added) == 3
    for row in added:
        assert row.machine_code is not None and row.machine_code.shape == (len(FEATURE_NAMES),)
        assert row.machine_code_set == MACHINE_CODE_SET
    write_tuning(tmp_path / "again", [chosen], rows)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]) + lines[2][:5])  # killed while the last line was written
    add_machine_code(tmp_path / "again", journal, on_record=lambda *step: steps.append(step))
    assert steps[1:] == [(3, 3)]
    codes = [read_records(place).measurements for place in (dataset, tmp_path / "again")]
    for first, second in zip(*codes, strict=True):
        assert first.machine_code is not None and second.machine_code is not None
        assert first.machine_code.tolist() == second.machine_code.tolist()
