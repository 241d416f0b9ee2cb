"""`graphnet records`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets.tuning.records import read_records, write_tuning
from tests.tuning.live import needs_tvm
from tests.tuning.toy import TASKS, make_pool

from .calling import call

DATABASE = Path(__file__).parents[1] / "tuning" / "tvm_database"
"""A mean over rows of [1, 32, 192] with two records, as TVM 0.27 writes it."""


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    made = make_pool(each=6)
    rows = [row for task in TASKS for row in made.rows(task)]
    rows = [dataclasses.replace(row, record_id=str(number)) for number, row in enumerate(rows)]
    return write_tuning(tmp_path / "pool", TASKS, rows)


def test_features_need_no_tvm_and_a_directory_no_slash(
    pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("records", "export", "pool", "--out", "rows.npz", "--splits-by", "task").stdout
    with np.load(tmp_path / "rows.npz", allow_pickle=False) as arrays:
        assert f"{len(arrays['times_ms'])} records written to rows.npz" in said
        assert len(arrays["offsets"]) == len(arrays["times_ms"]) + 1
        assert set(arrays["task"]) == {task.task_id for task in TASKS}
    assert "exists" in call("records", "export", pool, "--out", "rows.npz", exit_code=1).stderr
    found = call("records", "export", pool, "--out", "b.npz", "--splits-by", "size", exit_code=1)
    assert "`splits_by` must be one of family, task, random" in found.stderr
    assert not (tmp_path / "b.npz").exists()


@needs_tvm
def test_an_invalid_database_is_refused_before_a_process_starts(tmp_path: Path) -> None:
    found = call("records", "import", tmp_path, "--out", tmp_path / "mine", exit_code=1)
    assert "no `database_workload.json`" in found.stderr and not (tmp_path / "mine").exists()


@needs_tvm
@pytest.mark.slow
def test_a_database_of_tvm_comes_in_and_goes_out_again(tmp_path: Path) -> None:
    assert "Written to" in call("records", "import", DATABASE, "--out", tmp_path / "mine").stdout
    found = read_records(tmp_path / "mine")
    (task,) = found.tasks.values()
    assert task.arg_shapes == ((1, 32, 192), (1, 192)) and len(found.measurements) == 2
    said = call("records", "export", tmp_path / "mine", "--out", tmp_path / "again").stdout
    assert said.startswith("2 records written to")
    for name in ("database_workload.json", "database_tuning_record.json"):
        before, after = (
            [json.loads(line) for line in (place / name).read_text().splitlines()]
            for place in (DATABASE, tmp_path / "again")
        )
        assert len(before) == len(after)
    np.testing.assert_allclose([line[1][1] for line in after], [line[1][1] for line in before])
    assert [line[1][0] for line in after] == [line[1][0] for line in before]  # the traces
