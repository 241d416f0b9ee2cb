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
    journal = Journal(tmp_path / "run", SETTINGS)
    for row in rows:
        journal.append(row)
    journal.save_state({"observed": 2})
    again = Journal(tmp_path / "run", SETTINGS)
    assert [row.to_row() for row in again.rows] == [row.to_row() for row in rows]
    assert again.state == {"observed": 2} and again.run_id == journal.run_id


def test_numbers_that_are_none_come_back_too(tmp_path: Path) -> None:
    row = next(iter(make_pool(each=2).rows(next(iter(make_pool(each=2).tasks.values())))))
    journal = Journal(tmp_path / "run", {})
    journal.append(measured(task(8), 0))
    journal.append(row)
    journal.save_state({})
    again = Journal(tmp_path / "run", {})
    assert again.rows[1].to_row() == row.to_row()
    assert not math.isnan(np.sum(again.rows[0].features))


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path, cut: int) -> None:
    journal = Journal(tmp_path / "run", SETTINGS)
    journal.append(measured(task(8), 0))
    journal.save_state({})
    path = tmp_path / "run" / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    journal = Journal(tmp_path / "run", SETTINGS)
    assert len(journal.rows) == 1
    journal.append(measured(task(8), 1))
    assert [row.trial for row in Journal(tmp_path / "run", SETTINGS).rows] == [0, 1]


def test_other_settings_and_broken_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "run"
    Journal(place, SETTINGS).append(measured(task(8), 0))
    with pytest.raises(TuningError, match="but no state"):
        Journal(place, SETTINGS)
    with pytest.raises(
        TuningError, match=r"`seed` was 0 and is now 1\. Resume with the same settings"
    ):
        Journal(place, {**SETTINGS, "seed": 1})
    (place / "state.json").write_text("{}")
    (place / "records.jsonl").write_text('{"task_id": 3}\n')
    with pytest.raises(TuningError, match=r"records\.jsonl` has a line that is not a measurement"):
        Journal(place, SETTINGS)
