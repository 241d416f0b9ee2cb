from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark import run
from graphnet_datasets.benchmark.executors.executors import (
    LocalExecutor,
    device_lock,
    parse_devices,
)
from graphnet_datasets.benchmark.executors.sample_runner import CandidateCompiler, SampleJob
from graphnet_datasets.errors import RunError
from graphnet_datasets.schema import sample_to_row
from tests.benchmark.samples import LINEAR, make_sample, quick

HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from graphnet_datasets.benchmark.executors.executors import device_lock
with device_lock("cuda:0"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_gpu_is_held_by_one_run_and_let_go_when_that_is_killed(directory: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    waiter = None
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder.stdin, holder.stdout:
        assert holder.stdout.readline() == b"held\n"
        waiter = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert waiter.stdin is not None
        assert waiter.stdout is not None
        with pytest.raises(subprocess.TimeoutExpired):
            waiter.wait(1)
        with device_lock("cuda:1"):  # another device is free
            holder.kill()
            holder.wait()
        with waiter.stdin, waiter.stdout:
            assert waiter.stdout.readline() == b"held\n"
    assert waiter.wait(20) == 0


def test_a_link_in_place_of_the_lock_is_refused(directory: Path) -> None:
    path = directory / "graphnet-datasets-cuda-0.lock"
    path.symlink_to(directory / "elsewhere")
    with pytest.raises(RunError) as caught, device_lock("cuda"):
        pass
    assert str(caught.value).startswith(
        f"The lock `{path}` of the device `cuda` cannot be opened: "
    )
    assert not (directory / "elsewhere").exists()


def test_the_gpu_itself_is_locked_whatever_its_index(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-ab/c")
    with device_lock("cuda:0"), device_lock("cuda:1"):
        assert sorted(path.name for path in directory.iterdir()) == [
            "graphnet-datasets-cuda-3.lock",
            "graphnet-datasets-cuda-GPU-ab-c.lock",
        ]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (
            "",
            "`` is not a device. Use `cpu`, `cuda`, `cuda:1`, or several GPUs as `cuda:0,cuda:1`.",
        ),
        ("cuda:x", "`cuda:x` is not a device. Use `cpu`, `cuda`, `cuda:1`, or several GPUs as "),
        ("cuda:0,cpu", "Several devices must be GPUs with their indices, as in "),
        ("cuda:0,cuda:0", "`cuda:0,cuda:0` contains a device twice. Remove one of them."),
        ([], "No device is selected. Choose `cpu` or `cuda`."),
    ],
)
def test_invalid_and_differing_devices_are_refused(device: str | list[str], message: str) -> None:
    with pytest.raises(RunError) as caught:
        parse_devices(device)
    assert str(caught.value).startswith(message)


SAMPLES = [make_sample(f"relu{index}", *LINEAR.ops, inputs=LINEAR.inputs) for index in range(4)]
JOBS = [
    SampleJob(
        sample,
        sample_to_row(sample, derived_columns(sample)),
        [(f"id{index}", CandidateCompiler("tests.candidates:takes_a_while", "torch", {}, ""))],
    )
    for index, sample in enumerate(SAMPLES)
]


@pytest.mark.usefixtures("directory")
def test_each_of_several_devices_takes_the_next_sample() -> None:
    executor = LocalExecutor(["cpu", "cpu:0"], quick())  # two names of one device
    try:
        records = [record for _, (record,) in executor.run(JOBS)]
    finally:
        executor.close()
    assert {record["status"] for record in records} == {"ok"}
    assert sorted(record["sample_id"] for record in records) == [each.id for each in SAMPLES]
    assert {record["device"] for record in records} == {"cpu", "cpu:0"}


@pytest.mark.usefixtures("directory")
def test_an_error_on_one_of_several_devices_reaches_the_caller() -> None:
    def refuse(*_: object) -> None:
        raise RunError("The disk is full.")

    executor = LocalExecutor(["cpu", "cpu:0"], quick(), take_outputs=refuse)
    try:
        with pytest.raises(RunError) as caught:
            list(executor.run(JOBS))
    finally:
        executor.close()
    assert str(caught.value) == "The disk is full."


@pytest.mark.gpu
def test_all_gpus_take_samples_and_share_their_records(tmp_path: Path) -> None:
    import torch

    devices = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    runs = run(SAMPLES, "eager", devices, out=tmp_path, settings=quick())
    assert runs["status"] == ["ok"] * 4
    assert set(runs["device"]) <= set(devices)
    again = run(SAMPLES, "eager", devices, out=tmp_path, settings=quick())
    assert again.to_list() == runs.to_list()
