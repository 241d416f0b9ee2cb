from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.benchmark.records.records import (
    RunStore,
    hash_json,
    make_run_id,
    read_runs,
    rows_to_table,
    sample_digest,
    to_plain,
    write_runs,
)
from graphnet_datasets.errors import (
    DatasetNotFoundError,
    FormatVersionError,
    RunError,
    SchemaError,
    UnsafePathError,
)
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.schema import OUTPUT_FIELDS, RUNS_SCHEMA, empty_run
from graphnet_datasets.schema.runs import LATER_COLUMNS
from tests.benchmark.samples import LINEAR
from tests.strategies import samples


def record(run_id: str, **columns: Any) -> dict[str, Any]:
    return {
        **empty_run(),
        "run_id": run_id,
        "sample_id": f"sample {run_id}",
        "status": "ok",
        "started_at": f"2026-01-01T00:00:{int(run_id, 36):02d}",
        **columns,
    }


def test_a_record_is_there_as_soon_as_it_is_added(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.append(record("1", min_t=-math.inf, baseline_latency_ms=[1.5, 2.5], warnings=["slow"]))
    (row,) = read_runs(tmp_path).to_pylist()
    assert row["min_t"] == -math.inf
    assert row["baseline_latency_ms"] == [1.5, 2.5]
    assert not (tmp_path / "runs.parquet").exists()


def test_compacting_keeps_every_record_and_leaves_one_file(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for name in "1234":
        store.append(record(name))
    before = read_runs(tmp_path)
    store.compact()
    assert read_runs(tmp_path).equals(before)
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["runs.parquet"]


def test_a_reopened_store_knows_its_records(tmp_path: Path) -> None:
    RunStore(tmp_path).append(record("1"))
    store = RunStore(tmp_path)
    assert "1" in store
    assert "2" not in store
    store.append(record("2"))
    assert store.table(["2", "3", "1"])["run_id"].to_pylist() == ["2", "1"]


def test_a_record_that_is_in_the_table_and_in_a_part_counts_once(tmp_path: Path) -> None:
    """A process can be killed between writing the table and removing the parts."""
    store = RunStore(tmp_path)
    store.append(record("1"))
    part = (tmp_path / "parts" / "1.parquet").read_bytes()
    store.compact()
    (tmp_path / "parts" / "1.parquet").write_bytes(part)
    assert read_runs(tmp_path).num_rows == 1
    assert RunStore(tmp_path).table(["1"]).num_rows == 1


def test_partial_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.append(record("1"))
    leftover = tmp_path / "parts" / f".2.parquet.{2**22 + 1}.0a1b2c3d.tmp"
    leftover.write_bytes(b"PAR1 half")
    assert read_runs(tmp_path).num_rows == 1
    RunStore(tmp_path)
    assert not leftover.exists()


def _append(path: Path, names: str) -> None:
    store = RunStore(path)
    for name in names:
        store.append(record(name))
        store.compact()


def test_two_processes_may_add_to_one_directory(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append, args=(tmp_path, names)) for names in ("123", "456")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert sorted(read_runs(tmp_path)["run_id"].to_pylist()) == list("123456")


def test_writing_and_reading_a_table_is_exact(tmp_path: Path) -> None:
    table = rows_to_table([record("1", min_t=math.inf), record("2", outputs=[])])
    write_runs(table, tmp_path / "runs.parquet")
    assert read_runs(tmp_path / "runs.parquet").equals(table)


def test_a_directory_without_records_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        read_runs(tmp_path)
    assert str(caught.value) == (
        f"There are no run records at `{tmp_path}`. Create some with "
        f"`graphnet run … --out {tmp_path}`."
    )


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.append(record("1"))
    part = tmp_path / "parts" / "1.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(SchemaError) as caught:
        RunStore(tmp_path)
    assert str(caught.value).startswith(f"`{part}` is not a complete Parquet file (")
    assert str(caught.value).endswith("Delete it and run again; the other records are kept.")


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    table = rows_to_table([record("1", schema_version=99)])
    pq.write_table(table, tmp_path / "runs.parquet")
    with pytest.raises(FormatVersionError) as caught:
        read_runs(tmp_path)
    assert "is of format version 99, but this library reads version 1." in str(caught.value)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"run_id": ["1"]}), tmp_path / "runs.parquet")
    with pytest.raises(SchemaError, match="does not have the columns of the `runs` table"):
        read_runs(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"speed": 1},
            "A run record does not match the columns of the `runs` table: `speed` missing or "
            "unknown. "
            "Start from `schema.empty_run()`.",
        ),
        ({"num_ops": "many"}, "A run record does not fit the `runs` table: "),
        ({"error_message": "\ud800"}, "A run record does not fit the `runs` table: "),
    ],
)
def test_a_record_that_does_not_fit_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        RunStore(tmp_path).append({**record("1"), **change})
    assert str(caught.value).startswith(message)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError) as caught:
        RunStore(tmp_path / "file" / "runs")
    assert str(caught.value) == (
        f"The directory `{tmp_path / 'file' / 'runs'}` for run records cannot be written: "
        "Not a directory. Choose another one with `out`."
    )


@given(samples())
@settings(max_examples=25)
def test_the_same_sample_has_the_same_digest(sample: Sample) -> None:
    assert sample_digest(sample) == sample_digest(dataclasses.replace(sample))


def test_the_digest_changes_with_all_that_a_run_depends_on() -> None:
    stored = dataclasses.replace(
        LINEAR,
        inputs=(
            LINEAR.inputs[0],
            Input("constant", Value("float32", (8, 16)), data=bytes(512)),
        ),
    )
    other_data = dataclasses.replace(
        stored,
        inputs=(stored.inputs[0], dataclasses.replace(stored.inputs[1], data=b"\1" + bytes(511))),
    )
    changed = [
        LINEAR,
        dataclasses.replace(LINEAR, id="test/other"),
        dataclasses.replace(LINEAR, ops=(*LINEAR.ops[:-1], Op("torch.tanh", LINEAR.ops[-1].args))),
        stored,
        other_data,
    ]
    assert len({sample_digest(each) for each in changed}) == len(changed)
    renamed = dataclasses.replace(LINEAR, task="cv")
    assert sample_digest(renamed) == sample_digest(LINEAR)


def test_a_run_is_the_same_only_under_the_same_everything() -> None:
    base = {"compiler": "x", "options": {"a": 1, "b": 2}, "settings": {"seed": 0}}
    assert make_run_id(LINEAR, **base) == make_run_id(
        LINEAR, settings={"seed": 0}, options={"b": 2, "a": 1}, compiler="x"
    )
    others = [{**base, "compiler": "y"}, {**base, "settings": {"seed": 1}}]
    assert len({make_run_id(LINEAR, **each) for each in [base, *others]}) == 3


@given(st.dictionaries(st.text(), st.floats() | st.integers() | st.none() | st.tuples(st.text())))
def test_anything_plain_can_be_hashed(value: dict[str, Any]) -> None:
    plain = to_plain(value)
    assert hash_json(json.loads(json.dumps(plain))) == hash_json(plain)


def test_the_schema_is_that_of_the_runs_table(tmp_path: Path) -> None:
    RunStore(tmp_path).append(record("1"))
    assert read_runs(tmp_path).schema.equals(RUNS_SCHEMA, check_metadata=True)


@pytest.mark.parametrize("lost", [["judged"], sorted(LATER_COLUMNS)])
def test_a_file_from_before_a_column_came_is_read(tmp_path: Path, lost: list[str]) -> None:
    older = rows_to_table([record("1"), record("2")]).drop_columns(lost)
    pq.write_table(older, tmp_path / "runs.parquet")
    rows = read_runs(tmp_path).to_pylist()
    assert [row["run_id"] for row in rows] == ["1", "2"]
    assert all(row[name] is None for row in rows for name in lost)
    RunStore(tmp_path).append(record("3"))
    assert RunStore(tmp_path).table("123")["run_id"].to_pylist() == ["1", "2", "3"]


def test_outputs_from_before_a_field_came_are_read(tmp_path: Path) -> None:
    fields = [field.arrow_field() for field in OUTPUT_FIELDS if field.name != "constant_t"]
    table = rows_to_table([record("1")])
    place = table.schema.names.index("outputs")
    older = pa.array([[{"dtype": "float32", "null_t": 1.0}]], pa.list_(pa.struct(fields)))
    pq.write_table(table.set_column(place, "outputs", older), tmp_path / "runs.parquet")
    (row,) = read_runs(tmp_path).to_pylist()
    assert (row["outputs"][0]["null_t"], row["outputs"][0]["constant_t"]) == (1.0, None)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_records_that_are_not_regular_files_are_refused(kind: str, tmp_path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / "runs.parquet")
    else:
        (tmp_path / "runs.parquet").symlink_to("/dev/zero")
    with pytest.raises(UnsafePathError):
        read_runs(tmp_path)
