"""Run records from files, tables and rows, split by arm, one per sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets.errors import (
    DatasetNotFoundError,
    FormatVersionError,
    SchemaError,
    ScoreError,
)
from graphnet_datasets.schema import RUNS_SCHEMA
from graphnet_datasets.scores import as_table, speedup_score, split_arms, split_by
from graphnet_datasets.scores.run_sets import without_duplicates

from .run_rows import FOUR, make_run


def test_a_directory_of_parts_is_one_run_set(tmp_path: Path) -> None:
    for index, row in enumerate(FOUR):
        pq.write_table(pa.Table.from_pylist([row], RUNS_SCHEMA), tmp_path / f"part-{index}.parquet")
    assert as_table(tmp_path)["sample_id"].to_pylist() == ["fast", "slow", "crashed", "refused"]


def test_a_record_that_is_in_two_files_is_one_record(tmp_path: Path) -> None:
    rows = [make_run("a", 1.0, run_id="x"), make_run("b", 1.0, run_id="y"), make_run("c", 1.0)]
    pq.write_table(pa.Table.from_pylist(rows, RUNS_SCHEMA), tmp_path / "runs.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:1], RUNS_SCHEMA), tmp_path / "x.parquet")
    assert sorted(as_table(tmp_path)["sample_id"].to_pylist()) == ["a", "b", "c"]


def test_missing_records_are_reported_with_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError) as error:
        as_table(tmp_path)
    assert str(error.value) == (
        f"There are no run records at `{tmp_path}`. Create some with "
        f"`graphnet run … --out {tmp_path}`."
    )


def test_a_truncated_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    pq.write_table(pa.Table.from_pylist(FOUR, RUNS_SCHEMA), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SchemaError, match=rf"^`{path}` is not a complete Parquet file "):
        as_table(path)


def test_missing_columns_are_named() -> None:
    with pytest.raises(SchemaError) as error:
        as_table(pa.table({"sample_id": ["a"], "speedup": [1.0]}))
    assert str(error.value) == (
        "The run records lack the columns `status`, `min_t`. Records are written by "
        "`graphnet run` and `graphnet import-log`."
    )


def test_a_column_of_another_type_is_named() -> None:
    table = as_table(FOUR)
    index = table.column_names.index("speedup")
    with pytest.raises(SchemaError) as error:
        as_table(table.set_column(index, "speedup", pa.array(["fast"] * 4)))
    assert str(error.value) == (
        "The column `speedup` of the run records has the type string, but it must be double."
    )


def test_records_of_a_later_format_are_refused() -> None:
    with pytest.raises(FormatVersionError) as error:
        as_table([make_run("a", 1.0, schema_version=99)])
    assert str(error.value) == (
        "The run records are of format version 99, but this library reads version 1. Install the "
        "version of `graphnet-datasets` that wrote them."
    )


@pytest.mark.parametrize("runs", [3, [1, 2]])
def test_invalid_run_sets_are_refused(runs: Any) -> None:
    with pytest.raises(
        SchemaError, match=r"^Run records must be a dataset, an Arrow table, a path or"
    ):
        as_table(runs)


def test_arms_are_compilers_with_their_options_and_conditions() -> None:
    runs = [
        make_run("a", 1.0, compiler="x", compiler_options="{}", device="cuda:0"),
        make_run("b", 1.0, compiler="x", compiler_options=None, device="cuda:1"),
        make_run("a", 1.0, compiler="y", compiler_options='{"mode":"max"}', cache_mode="warm"),
        make_run("a", 1.0, compiler="y", cache_mode="cold"),
    ]
    arms = split_arms(as_table(runs))
    assert {name: arm["sample_id"].to_pylist() for name, arm in arms.items()} == {
        "x": ["a", "b"],
        "y (mode=max, cache_mode warm)": ["a"],
        "y (cache_mode cold)": ["a"],
    }


def test_an_arm_is_called_by_the_options_in_which_it_differs() -> None:
    options = [
        '{"precision": "f32", "threads": 0}', '{"threads":0,"precision":"f32"}',
        '{"precision": "bf16", "threads": 0}', '{"threads": 0, "precision": true}',
        '{"threads": 0, "precision": "true"}', '{"threads": 0, "precision": {"a, b": [1]}}',
        '{"threads": 0}',
    ]  # fmt: skip
    runs = [make_run(str(n), 1.0, compiler="x", compiler_options=o) for n, o in enumerate(options)]
    arms = split_arms(as_table(runs))
    assert {name: arm["sample_id"].to_pylist() for name, arm in arms.items()} == {
        "x (precision=f32)": ["0", "1"],
        "x (precision=bf16)": ["2"],
        "x (precision=true)": ["3"],
        'x (precision="true")': ["4"],
        'x (precision={"a, b": [1]})': ["5"],
        "x": ["6"],
    }


@pytest.mark.parametrize(
    "text", ["no JSON", "[1]", "[" * 100_000, '{"a": ' + "1" * 5000 + "}"], ids=len
)
def test_options_that_are_no_object_are_said_whole(text: str) -> None:
    runs = [
        make_run("a", 1.0, compiler_options=text),
        make_run("b", 1.0, compiler_options='{"a": 1}'),
    ]
    arms = split_arms(as_table(runs))
    assert list(arms) == [
        f"inductor (compiler_options {text})",
        'inductor (compiler_options {"a": 1})',
    ]


def test_runs_with_other_numbers_of_threads_are_another_arm() -> None:
    runs = [make_run("a", 1.0, num_threads=count) for count in (1, 2)]
    assert list(split_arms(as_table(runs))) == [
        "inductor (num_threads 1)",
        "inductor (num_threads 2)",
    ]


def test_differences_that_follow_the_device_are_summarised_by_it() -> None:
    gpu = {"device": "cuda", "compiler_version": "2.11", "num_threads": 16}
    cpu = {"device": "cpu", "compiler_version": "2.13", "num_threads": 2}
    runs = [
        make_run("a", 1.0, **gpu),
        make_run("a", 1.0, **cpu),
        make_run("a", 1.0, **cpu, compiler_options='{"mode": "max"}'),
        make_run("a", 1.0, compiler="other", **gpu),
    ]
    assert list(split_arms(as_table(runs))) == [
        "inductor (device cuda)",
        "inductor (device cpu)",
        "inductor (mode=max, device cpu)",
        "other",
    ]


def test_a_score_of_two_compilers_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score([*FOUR, make_run("fast", 3.0, compiler="torchscript")])
    assert str(error.value) == (
        "These run records belong to 2 arms: `inductor` (4 runs), `torchscript` (1 runs). A score "
        "is that of one arm. Filter the records first, for example "
        '`runs.filter(lambda row: row["compiler"] == …)`, or choose an arm with '
        "`graphnet score --compiler`."
    )


def test_two_runs_of_a_sample_are_refused() -> None:
    with pytest.raises(ScoreError) as error:
        speedup_score([*FOUR, make_run("slow", 3.0)])
    assert str(error.value) == (
        "1 sample with several runs, such as `slow`. A score counts each sample once. Filter the "
        'records, or keep the newest with `duplicates="newest"` (`graphnet score --duplicates '
        "newest`)."
    )


def test_the_newest_run_of_a_sample_can_be_selected() -> None:
    runs = [
        make_run("a", 2.0, started_at="2026-02-01T00:00:00Z"),
        make_run("b", 1.0),
        make_run("a", 3.0, started_at="2026-01-01T00:00:00Z"),
        make_run("b", 4.0),
    ]
    newest = without_duplicates(as_table(runs), "newest")
    assert newest["speedup"].to_pylist() == [2.0, 4.0]
    assert speedup_score(runs, duplicates="newest").at(0)["S"] == pytest.approx(8**0.5)


def test_records_are_split_by_task() -> None:
    parts = split_by(as_table([*FOUR, make_run("x", 1.0)]), "task")
    assert {task: part.num_rows for task, part in parts.items()} == {
        "cv": 2,
        "nlp": 2,
        "unknown": 1,
    }


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("compiler_version", ("2.12", "2.13")),
        ("compiler_source", ("aa", "bb")),
        ("compiler_options", ('{"mode": "a"}', '{"mode": "b"}')),
        ("baseline", ("eager", "static")),
        ("device", ("cpu", "cuda:0")),
        ("cache_mode", ("warm", "cold")),
        ("launch_mode", ("stream", "cuda_graph")),
        ("num_threads", (1, 8)),
        ("weights", ("inputs", "parameters")),
        ("input_mode", ("replay", "probe")),
    ],
)
def test_runs_under_another_condition_are_another_arm(column: str, values: Any) -> None:
    runs = [
        make_run("a", 2.0, **{column: values[0]}),
        make_run("b", 3.0, **{column: values[1]}),
    ]
    arms = split_arms(as_table(runs))
    assert len(arms) == 2
    detail = "mode=" if column == "compiler_options" else column
    assert all(detail in name for name in arms)
    with pytest.raises(ScoreError, match="These run records belong to 2 arms"):
        speedup_score(runs)


@pytest.mark.parametrize("column", ["compiler_version", "launch_mode", "baseline", "num_threads"])
def test_a_run_with_unknown_columns_belongs_to_the_only_arm(column: str) -> None:
    value = 4 if column == "num_threads" else "x"
    runs = [make_run("a", 2.0, **{column: value}), make_run("b", status="compile_failed")]
    assert speedup_score(runs).num_samples == 2
    others = [*runs, make_run("c", 2.0, **{column: 8 if column == "num_threads" else "y"})]
    assert len(split_arms(as_table(others))) == 3


def test_differing_machines_and_settings_are_listed_with_the_score() -> None:
    runs = [
        make_run(
            str(index),
            2.0,
            environment=json.dumps({"cpu": {"model": model}, "packages": {"torch": "2.13"}}),
            settings=json.dumps({"seed": 0, "timing": {"budget_s": budget}}),
        )
        for index, (model, budget) in enumerate([("A", 1), ("A", 1), ("B", 2)])
    ]
    scores = speedup_score(runs)
    assert scores.conditions == {
        "environment cpu.model": {"A": 2, "B": 1},
        "settings timing.budget_s": {"1": 2, "2": 1},
    }
    for text in (str(scores), scores._repr_html_()):
        assert "Merged over 2 values of environment cpu.model: A (2), B (1)" in text
    assert speedup_score(runs[:2]).conditions == {}
