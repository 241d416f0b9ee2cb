"""The script that runs on a bare machine, here on a CPU."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builder.gpu_records import script
from builder.gpu_records.script import (
    CACHE,
    CACHES,
    MAX_LOST,
    PLAN,
    RECORDS,
    RUNS,
    STARTED,
    WHEELS,
    Arm,
    Call,
    Session,
    TimeIsUp,
    device_name,
    ends_after,
    slices,
    unpack_caches,
    unpack_wheels,
)
from graphnet_datasets.benchmark import read_runs, write_runs
from graphnet_datasets.schema import Status, empty_run
from graphnet_datasets.storage.table import write_table

from .test_folder import relu

IDS = [f"example/{number}" for number in range(3)]
EAGER = Arm(
    "eager", "parts", "rows.parquet", "eager", {}, {"has_oracle": False}, 2, [*enumerate(IDS)]
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three rows for eager, without wheels."""
    place = tmp_path / "folder"
    (place / WHEELS).mkdir(parents=True)
    write_table([relu(name, 64) for name in IDS], place / EAGER.file)
    plan = {"arms": [dataclasses.asdict(EAGER)], "done": {"cpu": {"eager": IDS[:1]}}}
    (place / PLAN).write_text(json.dumps(plan))
    shutil.copyfile(script.__file__, place / "records.py")
    return place


def session(folder: Path, tmp_path: Path, kind: type[Session] = Session) -> Session:
    (tmp_path / "out").mkdir(exist_ok=True)
    return kind(folder, tmp_path / "out", tmp_path / "work", "cpu", 1)


def test_all_arms_take_a_slice_before_any_takes_the_next() -> None:
    other = dataclasses.replace(EAGER, name="other", compiler="inductor", rows=EAGER.rows[1:])
    captured = dataclasses.replace(EAGER, name="captured", settings={"launch_mode": "cuda_graph"})
    calls = list(slices([EAGER, other, captured]))
    assert [
        [([arm.name for arm in call.arms], len(call.ids)) for call in some] for some in calls
    ] == [
        [(["eager"], 1), (["eager", "other"], 1), (["captured"], 2)],
        [(["eager", "other"], 1), (["captured"], 1)],
    ]


@pytest.mark.slow
def test_the_script_creates_missing_records_and_reports_the_rest(
    folder: Path, tmp_path: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != STARTED}
    answer = subprocess.run(
        [sys.executable, str(folder / "records.py"), "--device=cpu", "--jobs=1", "--seconds=3000",
         f"--out={tmp_path / 'out'}", f"--work={tmp_path / 'work'}"],
        capture_output=True, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    records = read_runs(tmp_path / "out" / RECORDS)
    assert sorted(records["sample_id"].to_pylist()) == IDS[1:]
    assert set(records["status"].to_pylist()) == {Status.OK}
    assert "eager: 2 of 2 records (2 ok)" in answer.stdout
    assert "every sample has its records" in answer.stdout
    assert "0 records are left" in answer.stdout


class Terminated(Session):
    """A session that is terminated after its first record."""

    def _take(self, call: Call, record: Mapping[str, Any]) -> None:
        super()._take(call, record)
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.slow
def test_a_session_that_is_ended_keeps_its_records_and_goes_on_later(
    folder: Path, tmp_path: Path
) -> None:
    first = session(folder, tmp_path, Terminated)
    first.run({"parts": slices([EAGER])}, {}, 3000)
    assert first.ending == "the seconds were over"
    num_records = read_runs(tmp_path / "out" / RECORDS).num_rows
    assert 1 <= num_records < len(IDS)
    assert f"{len(IDS) - 1} records are left" in "\n".join(first.summary([EAGER]))
    second = session(folder, tmp_path)
    second.run({"parts": slices([EAGER])}, {}, 3000)
    assert second.ending == "every sample has its records"
    assert read_runs(tmp_path / "out" / RECORDS).num_rows == len(IDS)
    assert second.tallies["eager"].num_records == len(IDS) - num_records


def test_nothing_is_run_without_time(folder: Path, tmp_path: Path) -> None:
    late = session(folder, tmp_path)
    late.run({"parts": slices([EAGER])}, {}, 0.0)
    late.save()
    assert late.ending == "the seconds were over"
    assert not (tmp_path / "out" / RECORDS).exists()


class Counting(Session):
    """A session whose calls take no time but that of one clock tick."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.stages: list[str] = []

    def _call(self, call: Call) -> None:
        self.stages.append(call.arms[0].stage)


def test_stages_without_shares_follow_one_after_the_other(folder: Path, tmp_path: Path) -> None:
    other = dataclasses.replace(EAGER, stage="graphs")
    stages = {"parts": slices([EAGER]), "graphs": slices([other])}
    counting = session(folder, tmp_path, Counting)
    counting.run(stages, {}, 3000)
    assert counting.stages == ["parts", "parts", "graphs", "graphs"]
    first = session(folder, tmp_path, Counting)
    first.run({"parts": slices([EAGER]), "graphs": slices([other])}, {"graphs": 1.0}, 3000)
    assert first.stages == ["graphs", "graphs", "parts", "parts"]


def test_the_end_interrupts_the_main_thread_and_restores_its_handlers() -> None:
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM)
    with pytest.raises(TimeIsUp), ends_after(1e-3):
        signal.pause()
    assert (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def failure(number: int) -> dict[str, Any]:
    return {
        **empty_run(), "run_id": str(number), "sample_id": IDS[0] if number == 0 else str(number),
        "compiler": "eager", "status": Status.OK if number == 0 else Status.RUN_FAILED,
        "reason": "crash", "error_message": "CUDA error: the device is lost",
        "started_at": f"2026-01-01T00:00:{number:02}+00:00",
    }  # fmt: skip


def test_failures_of_a_lost_device_are_no_records(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no driver
    lost = session(folder, tmp_path)
    lost.device = "cuda"
    records = [failure(number) for number in range(MAX_LOST + 1)]
    (tmp_path / "work").mkdir()
    write_runs(records, tmp_path / "work" / f"{RUNS}.parquet")
    (tmp_path / "work" / RUNS).mkdir()
    (tmp_path / "work" / f"{RUNS}.parquet").rename(tmp_path / "work" / RUNS / "runs.parquet")
    for record in records[:-1]:
        lost._take(Call((EAGER,), ()), record)
    with pytest.raises(script.DeviceLostError):
        lost._take(Call((EAGER,), ()), records[-1])
    lost.save()
    assert read_runs(tmp_path / "out" / RECORDS)["sample_id"].to_pylist() == [IDS[0]]
    assert f"{MAX_LOST} x run_failed, crash: CUDA error" in "\n".join(lost.summary([EAGER]))


def test_failures_with_the_device_present_are_records(folder: Path, tmp_path: Path) -> None:
    present = session(folder, tmp_path)
    for number in range(2 * MAX_LOST + 1):
        present._take(Call((EAGER,), ()), failure(number))
    assert present.tallies["eager"].statuses == {Status.OK: 1, Status.RUN_FAILED: 2 * MAX_LOST}


def test_a_session_ends_where_the_device_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    missing = session(folder, tmp_path)
    missing.device = "cuda"
    missing.run({"parts": slices([EAGER])}, {}, 3000)
    assert missing.ending == "the device was lost"


def test_records_that_cannot_be_saved_are_reported_and_kept(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = session(folder, tmp_path)
    (tmp_path / "work" / RUNS).mkdir(parents=True)
    write_runs([failure(0)], tmp_path / "work" / RUNS / "runs.parquet")
    full.out = tmp_path / "missing" / "folder"
    (tmp_path / "missing").write_text("a file where a folder should be")
    full.save()
    assert "could not be written to" in capsys.readouterr().err
    assert read_runs(tmp_path / "work" / RUNS).num_rows == 1


def test_the_name_of_a_device_is_the_drivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device_name("cpu") == "cpu"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\n[ "$1" = --id=1 ] && echo NVIDIA H100 || exit 6\n')
    tool.chmod(0o755)
    assert device_name("cuda:1") == "NVIDIA H100"
    assert device_name("cuda:7") == ""


def test_wheels_and_caches_are_unpacked(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(folder / WHEELS / "example-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("example/__init__.py", "VERSION = 1")
    (tmp_path / "kernel").write_text("code")
    (folder / CACHES).mkdir()
    with tarfile.open(folder / CACHES / "0000.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "kernel", "fxgraph/kernel")
    site = unpack_wheels(folder, tmp_path / "work")
    unpack_caches(folder, tmp_path / "work")
    assert (site / "example" / "__init__.py").read_text() == "VERSION = 1"
    assert (tmp_path / "work" / CACHE / "fxgraph" / "kernel").read_text() == "code"
    (folder / WHEELS / "example-1.0-py3-none-any.whl").unlink()
    assert not (unpack_wheels(folder, tmp_path / "work") / "example").exists()
