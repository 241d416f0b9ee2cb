"""Records as arrays for cost models, and as databases of TVM and back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import TrialStatus
from graphnet_datasets.tuning.exporting import (
    SPLITS_BY,
    export_features,
    import_tvm_database,
)
from graphnet_datasets.tuning.records import TuningRecords
from tests.imports import imported_by

from .live import needs_tvm
from .test_records import measured, task


def found_records() -> TuningRecords:
    tasks = [task(8), dataclasses.replace(task(16), family="conv2d")]
    rows = [measured(each, number) for number, each in enumerate([*tasks, *tasks])]
    rows = [dataclasses.replace(each, feature_set="mine/1") for each in rows]
    failed = measured(tasks[0], 9, TrialStatus.CRASH)
    return TuningRecords({each.task_id: each for each in tasks}, (*rows, failed), {})


@pytest.mark.parametrize("splits_by", SPLITS_BY)
def test_features_times_and_splits_fit_together(tmp_path: Path, splits_by: str) -> None:
    found = found_records()
    path = export_features(found, tmp_path / "records.npz", splits_by=splits_by)
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["features"].shape == (8, 3) and arrays["offsets"].tolist() == [0, 2, 4, 6, 8]
        assert arrays["times_ms"].tolist() == [1.5] * 4 and (arrays["throughput"] == 1).all()
        assert set(arrays["split"]) <= {"train", "validation", "test"}
        groups = {"family": "family", "task": "task", "random": "record_id"}[splits_by]
        pairs = set(zip(arrays[groups].tolist(), arrays["split"].tolist(), strict=True))
        assert len(pairs) == len(set(arrays[groups].tolist()))  # a group lies in one split


def test_export_failures_are_reported(tmp_path: Path) -> None:
    found = found_records()
    with pytest.raises(TuningError, match="`splits_by` must be one of family, task, random"):
        export_features(found, tmp_path / "a.npz", splits_by="size")
    with pytest.raises(TuningError, match="has features"):
        export_features(TuningRecords(found.tasks, (), {}), tmp_path / "a.npz")
    mixed = dataclasses.replace(found.measurements[0], feature_set="other/1")
    with pytest.raises(TuningError, match="mix 2 feature sets"):
        export_features(
            dataclasses.replace(found, measurements=(*found.measurements, mixed)),
            tmp_path / "a.npz",
        )
    assert not list(tmp_path.iterdir())


@needs_tvm
@pytest.mark.slow
def test_a_database_of_tvm_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    database = tmp_path / "database"
    database.mkdir()
    with pytest.raises(TuningError, match=r"has no `database_workload\.json`"):
        import_tvm_database(database, tmp_path / "mine")
    (database / "database_workload.json").write_text('["1", "AAAA"]\n')
    (database / "database_tuning_record.json").write_text("[0, [[], [1.0], {}, []]]\nnothing\n")
    with pytest.raises(TuningError, match=r"None of the records in .* can be parsed"):
        import_tvm_database(database, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_the_parent_process_imports_no_framework() -> None:
    script = (
        "from graphnet_datasets.tuning import collecting, exporting, isolated_space, journal\n"
        "from graphnet_datasets.tuning import measure, records, running"
    )
    assert imported_by(script, "torch tvm paddle") == []
