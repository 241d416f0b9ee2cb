"""The folder for a machine with a GPU, and the records that come back."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builder.__main__ import main
from builder.capturing import BUILDER
from builder.gpu_records import folder as module
from builder.gpu_records.folder import (
    ARMS,
    CARRIED,
    MAX_FOLDER_BYTES,
    STARTER,
    arm_of,
    build_library,
    make_plan,
    merge,
    pack,
    pack_caches,
    read_digests,
    read_done,
)
from builder.gpu_records.queue import FILES, GRAPHS_FILE, PARTS_FILE
from builder.gpu_records.script import PLAN, WHEELS, read_plan
from graphnet_datasets import Sample
from graphnet_datasets.benchmark import write_runs
from graphnet_datasets.errors import DatasetNotFoundError, GraphNetError
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import Status, empty_run
from graphnet_datasets.storage.table import write_table

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"


def relu(name: str, size: int = 2) -> Sample:
    inputs = (Input("input", Value("float32", (size,))),)
    return Sample(name, "torch", "other", inputs, (Op("torch.relu", (Ref(0),)),), Ref(1))


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    """A directory with three rows of each file."""
    place = tmp_path / "queue"
    for name in FILES:
        stem = name.removesuffix(".parquet")
        write_table([relu(f"{stem}/{number}") for number in range(3)], place / name)
    return place


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A directory with a file for each wheel that is downloaded otherwise."""
    place = tmp_path / "wheels"
    place.mkdir()
    constraints = (BUILDER.parent / "constraints.txt").read_text().splitlines()
    versions = dict(line.split("==") for line in constraints if "==" in line)
    for name in CARRIED:
        path = place / f"{name.replace('-', '_')}-{versions[name]}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.py", "")
    return place


def record(queue: Path, file: str, number: int, **changes: Any) -> dict[str, Any]:
    names = list(read_digests(queue / file))
    return {
        **empty_run(),
        "run_id": json.dumps([file, number, changes], sort_keys=True),
        "sample_id": names[number],
        "sample_digest": read_digests(queue / file)[names[number]],
        "framework": "torch",
        "compiler": "inductor",
        "compiler_options": json.dumps({"mode": "default", "dynamic": "auto"}),
        "settings": json.dumps({"launch_mode": "stream"}),
        "device": "cuda",
        "environment": json.dumps({"gpu": {"name": H100}}),
        "status": Status.OK,
        "started_at": f"2026-01-01T00:00:0{number}+00:00",
        **changes,
    }


def digests(queue: Path) -> Mapping[str, Mapping[str, str]]:
    return {name: read_digests(queue / name) for name in FILES}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "parts-inductor"),
        (
            {"settings": '{"launch_mode": "cuda_graph"}', "launch_mode": "stream"},
            "parts-cuda-graph",
        ),
        ({"launch_mode": None}, "parts-inductor"),
        ({"compiler": "aotinductor"}, "parts-aotinductor"),
        ({"compiler_options": '{"mode": "reduce-overhead"}'}, "parts-reduce-overhead"),
        ({"compiler": "tvm"}, None),
        ({"sample_digest": "another"}, None),
        ({"sample_id": "another"}, None),
    ],
)
def test_a_record_belongs_to_the_arm_with_its_compiler_options_and_launch_mode(
    queue: Path, changes: dict[str, Any], expected: str | None
) -> None:
    arm = arm_of(record(queue, PARTS_FILE, 0, **changes), digests(queue))
    assert (arm and arm.name) == expected


def test_all_arms_have_names_of_their_own() -> None:
    assert len({arm.name for arm in ARMS}) == len(ARMS)


def test_merged_records_are_left_out_of_the_next_plan_of_their_card(
    queue: Path, tmp_path: Path
) -> None:
    records = [
        record(queue, PARTS_FILE, 0),
        record(queue, PARTS_FILE, 1, status=Status.COMPILE_FAILED),
        record(queue, GRAPHS_FILE, 2, environment=json.dumps({"gpu": {"name": H200}})),
    ]
    write_runs(records[:2], tmp_path / "first.parquet")
    write_runs(records[1:], tmp_path / "second.parquet")
    merge(queue, [tmp_path / "first.parquet"])
    assert merge(queue, [tmp_path / "second.parquet"]).num_rows == 3
    done = read_done(queue, digests(queue))
    assert done == {
        H100: {"parts-inductor": ["rows/0", "rows/1"]},
        H200: {"graphs-inductor": ["graphs/2"]},
    }
    ids = {name: list(rows) for name, rows in digests(queue).items()}
    (tmp_path / PLAN).write_text(json.dumps(make_plan(ids, done)))
    left = {arm.name: [name for _, name in arm.rows] for arm in read_plan(tmp_path, H100)}
    assert left["parts-inductor"] == ["rows/2"]
    assert left["graphs-inductor"] == ["graphs/0", "graphs/1", "graphs/2"]
    assert left["parts-cuda-graph"] == ["rows/0", "rows/1", "rows/2"]
    other = {arm.name: [place for place, _ in arm.rows] for arm in read_plan(tmp_path, H200)}
    assert (other["parts-inductor"], other["graphs-inductor"]) == ([0, 1, 2], [0, 1])


def test_damaged_records_leave_those_of_the_queue_as_they_are(queue: Path, tmp_path: Path) -> None:
    write_runs([record(queue, PARTS_FILE, 0)], tmp_path / "good.parquet")
    merge(queue, [tmp_path / "good.parquet"])
    (tmp_path / "damaged.parquet").write_bytes((tmp_path / "good.parquet").read_bytes()[:100])
    with pytest.raises(GraphNetError, match="damaged"):
        merge(queue, [tmp_path / "damaged.parquet"])
    with pytest.raises(DatasetNotFoundError):
        merge(queue, [tmp_path / "missing.parquet"])
    assert read_done(queue, digests(queue)) == {H100: {"parts-inductor": ["rows/0"]}}


def test_the_commands_report_merged_and_remaining_work(
    queue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs([record(queue, PARTS_FILE, 0)], tmp_path / "records.parquet")
    assert main(["gpu-merge", str(tmp_path / "records.parquet"), "--queue", str(queue)]) == 0
    printed = capsys.readouterr().out
    assert f"{H100}, parts-inductor: 1 of 3, 2 left" in printed


def test_caches_fill_the_space_that_is_left_in_the_order_of_the_queue(tmp_path: Path) -> None:
    caches = tmp_path / "caches"
    (caches / "fxgraph").mkdir(parents=True)
    names = [f"sample/{number}" for number in range(30)]
    lines = []
    for number, name in enumerate(names):
        path = caches / "fxgraph" / str(number)
        path.write_bytes(bytes((number * 37 + i * i) % 251 for i in range(4000)))
        entries = [] if number == 3 else [f"fxgraph/{number}", "fxgraph/0"]
        lines.append(json.dumps({"id": name, "entries": entries, "reason": ""}))
    (caches / "samples.jsonl").write_text("\n".join([*lines, '{"id": "sam']))
    size, number = pack_caches([caches], tmp_path / "all", names, 10**6)
    assert number == 29
    assert size == sum(path.stat().st_size for path in (tmp_path / "all").iterdir())
    packed = [name for path in sorted((tmp_path / "all").iterdir()) for name in _names(path)]
    assert len(packed) == len(set(packed)) == 29
    assert packed[:3] == ["fxgraph/0", "fxgraph/1", "fxgraph/10"]
    smaller, fewer = pack_caches([caches], tmp_path / "some", names, size - 1)
    assert 0 < smaller < size
    assert 0 < fewer < number
    assert pack_caches([caches], tmp_path / "none", names, 10) == (0, 0)
    with pytest.raises(GraphNetError, match="gpu-cache"):
        pack_caches([tmp_path / "missing"], tmp_path / "other", names, 10)


def _names(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_a_folder_above_the_limit_is_refused_and_leaves_nothing(
    queue: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FOLDER_BYTES", 1000)
    with pytest.raises(GraphNetError, match=r"at most 1000 can be copied.*fewer rows"):
        list(pack(queue, tmp_path / "folder", wheels))
    assert not (tmp_path / "folder").exists()


def test_a_queue_must_be_complete_and_no_other_folder_is_replaced(
    queue: Path, wheels: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious.txt").write_text("kept")
    with pytest.raises(GraphNetError, match="not a folder for a GPU"):
        list(pack(queue, tmp_path / "folder", wheels))
    assert (tmp_path / "folder" / "precious.txt").read_text() == "kept"
    (queue / PARTS_FILE).unlink()
    with pytest.raises(GraphNetError, match="gpu-queue"):
        list(pack(queue, tmp_path / "other", wheels))


@pytest.mark.slow
def test_a_folder_holds_all_but_the_embedded_dataset(
    queue: Path, wheels: Path, tmp_path: Path
) -> None:
    out = tmp_path / "folder"
    (line,) = pack(queue, out, wheels, num_rows=2)
    assert str(out) in line
    assert sorted(path.name for path in out.iterdir()) == [
        *sorted([*FILES, PLAN, "records.py"]),
        WHEELS,
    ]
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) < MAX_FOLDER_BYTES
    assert len(list((out / WHEELS).iterdir())) == len(CARRIED) + 1
    assert {len(arm.rows) for arm in read_plan(out, H100)} == {2}
    (library,) = (out / WHEELS).glob("graphnet_datasets-*.whl")
    names = zipfile.ZipFile(library).namelist()
    assert not [name for name in names if name.startswith(STARTER)]
    assert "graphnet_datasets/benchmark/runner.py" in names
    assert any(name.endswith("entry_points.txt") for name in names)
    list(pack(queue, out, wheels))
    assert {len(arm.rows) for arm in read_plan(out, H100)} == {3}
    assert build_library(BUILDER.parent, tmp_path / "wheels").name == library.name
