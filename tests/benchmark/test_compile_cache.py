"""Runs with carried compile caches: their settings, their records and their compile times."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets.benchmark import Settings, run
from graphnet_datasets.benchmark.judging.reported import take_compile_cache
from graphnet_datasets.benchmark.worker_job import WorkerJob
from graphnet_datasets.errors import RunError
from graphnet_datasets.scores.run_sets import as_table
from tests.benchmark.samples import LINEAR, quick


def test_the_records_do_not_contain_the_folder(tmp_path: Path) -> None:
    settings = Settings(compile_cache=str(tmp_path))
    assert settings.to_json()["compile_cache"] == "carried"
    assert Settings.from_json(settings.to_json()) == Settings()
    assert settings.hash() != Settings().hash()
    assert "compile_cache" not in Settings().to_json()  # the ids of older runs stay the same


def test_a_relative_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "caches").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Settings(compile_cache="caches").compile_cache == str((tmp_path / "caches").resolve())


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="which is not a folder"):
        Settings(compile_cache=str(tmp_path / "none"))


def test_a_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="which the nodes of a Ray cluster may lack"):
        run(LINEAR, "eager", executor="ray", compile_cache=str(tmp_path))


def test_a_job_may_read_the_folder_even_when_it_repeats_a_record() -> None:
    job = WorkerJob(kind="candidate", device="cpu", settings=Settings(), compile_cache="/caches")
    assert "/caches" in job.reads
    assert WorkerJob.from_payload(job.to_payload()) == job


@pytest.mark.parametrize(
    ("setting", "message", "recorded", "compile_time_s"),
    [
        ("cold", "cold", "cold", 2.0),
        ("cold", "carried", "cold", 2.0),
        ("carried", "carried", "carried", None),
        ("carried", "cold", "cold", 2.0),
        ("carried", None, "carried", None),
        (None, None, None, 2.0),
    ],
)
def test_a_compile_time_is_that_of_empty_caches(
    setting: str | None, message: str | None, recorded: str | None, compile_time_s: float | None
) -> None:
    record = {"compile_cache": setting, "compile_time_s": 2.0}
    take_compile_cache(record, {"compile_cache": message})
    assert record == {"compile_cache": recorded, "compile_time_s": compile_time_s}


@pytest.mark.slow
def test_eager_takes_nothing_from_carried_caches(tmp_path: Path) -> None:
    (tmp_path / "fxgraph").mkdir()
    (tmp_path / "fxgraph" / "entry").touch()
    settings = quick(compile_cache=str(tmp_path))
    (record,) = run(LINEAR, "eager", settings=settings)
    assert (record["status"], record["compile_cache"]) == ("ok", "cold")
    assert record["compile_time_s"] is not None


def test_scores_leave_out_compile_times_of_filled_caches() -> None:
    rows = [
        {
            **{"sample_id": cache, "status": "ok", "speedup": 2.0, "min_t": -3.0},
            **{"compile_cache": cache, "compile_time_s": 1.0, "break_even_calls": 5},
        }
        for cache in ("cold", "warm", "carried", None)
    ]
    table = as_table(rows)
    assert table["compile_time_s"].to_pylist() == [1.0, None, None, 1.0]
    assert table["break_even_calls"].to_pylist() == [5, None, None, 5]
    assert table["speedup"].to_pylist() == [2.0] * 4
