"""What a run leaves on the disk while it lasts, and what of it a kill costs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning.journal import Journal

from .test_records import measured, task
from .toy import make_pool

SETTINGS = {"tuner": "random", "seed": 0, "budget": [1, 2]}


def test_rows_and_state_come_back(tmp_path: Path) -> None:
    rows = [measured(task(8), 0), measured(task(8), 1)]
    with Journal(tmp_path / "run", SETTINGS) as journal:
        for each in rows:
            journal.append(each)
        journal.save_state({"observed": 2})
        run_id = journal.run_id
    with Journal(tmp_path / "run", SETTINGS) as again:
        assert [each.to_row() for each in again.rows] == [each.to_row() for each in rows]
        assert again.state == {"observed": 2} and again.run_id == run_id


def test_numbers_that_are_none_come_back_too(tmp_path: Path) -> None:
    row = next(iter(make_pool(each=2).rows(next(iter(make_pool(each=2).tasks.values())))))
    with Journal(tmp_path / "run", {}) as journal:
        journal.append(measured(task(8), 0))
        journal.append(row)
        journal.save_state({})
    with Journal(tmp_path / "run", {}) as again:
        assert again.rows[1].to_row() == row.to_row()
    assert not math.isnan(np.sum(again.rows[0].features))


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path, cut: int) -> None:
    with Journal(tmp_path / "run", SETTINGS) as journal:
        journal.append(measured(task(8), 0))
        journal.save_state({})
    path = tmp_path / "run" / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    with Journal(tmp_path / "run", SETTINGS) as journal:
        assert len(journal.rows) == 1
        journal.append(measured(task(8), 1))
    with Journal(tmp_path / "run", SETTINGS) as journal:
        assert [each.trial for each in journal.rows] == [0, 1]


def test_other_settings_and_broken_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with Journal(place, SETTINGS) as journal:
        journal.append(measured(task(8), 0))
    with pytest.raises(TuningError, match="but no state"):
        Journal(place, SETTINGS)
    with pytest.raises(
        TuningError, match=r"`seed` was 0 and is now 1\. Resume with the same settings"
    ):
        Journal(place, {**SETTINGS, "seed": 1})
    (place / "state.json").write_text("{}")
    (place / "records.jsonl").write_text('{"task_id": 3}\n')
    with pytest.raises(TuningError, match=r"Line 1 of .* is not a measurement"):
        Journal(place, SETTINGS)
