"""Records of every compiler as a table of the dataset, and which operator breaks which compiler."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from typer.testing import CliRunner

from builder.__main__ import main
from builder.arms import (
    ARMS,
    ARMS_BEGIN,
    ARMS_END,
    KEPT_CALLS,
    candidates,
    measure,
    ship_runs,
    table_of_arms,
    table_of_breaking,
)
from builder.breaking import BEGIN, END, breaking
from builder.capturing import EMBEDDED
from builder.placing import read_columns
from graphnet_datasets import load_dataset
from graphnet_datasets.benchmark.records.records import (
    read_runs,
    rows_to_table,
    sample_digest,
    write_runs,
)
from graphnet_datasets.cli.app import app
from graphnet_datasets.compilers.registry import find_entry
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Value
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.runs import empty_run
from graphnet_datasets.scores import as_table, split_arms
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import write_table
from tests.embedded import samples
from tests.tables import chain

pc: Any = pyarrow.compute

PLACE = "/home/me/lib/site-packages"
FFT, ADD, SIN = "torch.fft.rfft", "torch.add", "torch.sin"


def record(arm: str, sample: str, status: str, message: str | None = None) -> dict[str, Any]:
    return {"arm": arm, "sample_id": sample, "status": status, "error_message": message}


def test_an_operator_of_a_graph_that_went_well_is_no_suspect() -> None:
    operators = {"a": [ADD], "b": [ADD, FFT], "c": [ADD, FFT, SIN], "d": [SIN]}
    records = [
        record("x", "a", "ok"),
        record("x", "b", "compile_failed"),
        record("x", "c", "compile_failed", "Unsupported: aten::sin"),
        record("x", "d", "run_failed"),
        record("x", "gone", "run_failed"),
        record("y", "a", "run_failed"),
        record("y", "d", "ok"),
    ]
    found = breaking(records, operators)
    assert [(each.arm, each.operator, each.num_graphs, each.named) for each in found] == [
        ("x", SIN, 2, 1),  # it is named, and holds what is named
        ("x", FFT, 1, 0),
        ("y", ADD, 1, 0),
    ]
    assert (
        breaking([record("x", "a", "timeout"), record("x", "e", "ok")], {"a": [ADD], "e": [ADD]})
        == []
    )


def test_small_graphs_come_first_and_unknown_costs_are_left_out() -> None:
    rows = [
        {"id": "huge", "tags": [], "flops": 101},
        {"id": "data", "tags": [], "flops": None},
        {"id": "small", "tags": ["small"], "flops": 1000},
        {"id": "smaller", "tags": ["small"], "flops": None},
    ]
    assert [row["id"] for row in candidates(rows, 100)] == ["smaller", "small"]


def test_the_first_of_the_others_are_a_fair_sample_that_grows() -> None:
    rows = [{"id": f"graph-{flops}", "tags": None, "flops": flops} for flops in range(400)]
    chosen = [row["flops"] for row in candidates(rows, 399)]
    assert 150 < sum(chosen[:50]) / 50 < 250
    assert chosen == [row["flops"] for row in candidates(rows[::-1], 399)]
    assert [each for each in chosen if each < 100] == [row["flops"] for row in candidates(rows, 99)]


def test_every_arm_names_a_compiler_of_its_framework_and_options_that_it_has() -> None:
    assert len(ARMS) >= 8
    for framework, compiler, options in ARMS.values():
        found = find_entry(compiler, framework).load()
        assert found.framework == framework
        assert options.keys() <= found.option_table.keys()
    with pytest.raises(GraphNetError, match="There is no arm `gcc`"):
        next(measure(Path("x"), Path("y"), ["gcc"]))


def test_records_become_a_config_and_the_table_of_breaking_operators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, text = tmp_path / "data", tmp_path / "page.md"
    write_table([chain("a", 2, "cv"), chain("b", 3, "cv")], out / "cv" / "train-0000.parquet")
    write_readme(out)
    runs = [
        {**empty_run(), "run_id": str(number), "sample_id": name, "compiler": "tvm",
         "status": status, "framework": "torch", "device": "cpu", "compiler_options": "{}",
         "task": "cv", "started_at": str(9 - number),
         "dataset": str(out), "error_message": f"in {PLACE}/torch/jit/_trace.py(3): no",
         **({"speedup": 2.0, "min_t": -6.0, "null_t": 1.0} if status == "ok" else {})}
        for number, (name, status) in enumerate(
            [("a", "ok"), ("b", "compile_failed"), ("c", "baseline_failed")]
        )
    ]  # fmt: skip
    for order in (1, -1):
        write_runs(rows_to_table(runs[::order]), tmp_path / f"runs{order}.parquet")
    shipped = ship_runs(tmp_path / "runs1.parquet", out)
    path = out / "runs" / "train-0000.parquet"
    first = path.read_bytes()
    ship_runs(tmp_path / "runs-1.parquet", out)
    assert path.read_bytes() == first
    loaded = load_dataset(out, "runs", "all")
    assert loaded["sample_id"][:] == ["a", "b", "c"]
    assert loaded["dataset"][:] == ["graphnet"] * 3
    assert loaded["error_message"][1] == "in torch/jit/_trace.py(3): no"
    assert table_of_arms(shipped)[2:] == ["| tvm | 3 | 1 | 0 | 0 | 0 | 0 | 1 | 1 | 0.447 | 1.414 |"]
    assert table_of_breaking(shipped, out)[2:] == [
        "| tvm | no single operator responsible | 1 | | |"
    ]
    text.write_text(f"{ARMS_BEGIN}\n{ARMS_END}\n{BEGIN}\n{END}\n")
    assert (
        main(["runs", str(tmp_path / "runs1.parquet"), "--out", str(out), "--docs", str(text)]) == 0
    )
    for line in ("| tvm | no single operator responsible | 1 | | |", table_of_arms(shipped)[-1]):
        assert line in text.read_text()
    assert "| tvm | no single operator" in capsys.readouterr().out


@pytest.mark.slow
def test_recorded_graphs_are_not_timed_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    graph = {**sample_to_row(chain("a", 2, "cv")), "tags": ["small"]}
    write_table([graph], data / "cv" / "train-0000.parquet")
    write_readme(data)
    ((name, first),) = measure(data, tmp_path / "first", ["eager"], budget_s=0.05)
    assert (name, first["status"][:]) == ("eager", ["ok"])
    shipped = ship_runs(tmp_path / "first", data)
    (judged,), (kept,) = first["judged"][:], shipped["judged"].to_pylist()
    assert kept == judged[:KEPT_CALLS] != judged
    assert kept[0]["start"] is None, "the call of which all elements were judged comes first"
    ((_, again),) = measure(data, tmp_path / "second", ["eager"], budget_s=0.05)
    assert again["started_at"][:] == first["started_at"][:]
    command = ["measure", "eager", "--dataset", str(data), "--budget", "0.05", "--anew"]
    assert main([*command, "--out", str(tmp_path / "third")]) == 0
    (started,) = read_runs(tmp_path / "third")["started_at"].to_pylist()
    assert started > first["started_at"][0]


@pytest.mark.slow
def test_so_many_graphs_together_are_timed_under_every_arm_before_the_next_ones(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    graphs = [
        {**sample_to_row(chain(name, count, "cv")), "tags": ["small"], "flops": count}
        for count, name in enumerate("abc", start=2)
    ]
    write_table(graphs, data / "cv" / "train-0000.parquet")
    write_readme(data)
    arms = ["eager", "torchscript"]
    found = [
        (name, records["sample_id"][:])
        for name, records in measure(data, tmp_path / "runs", arms, budget_s=0.05, num_together=2)
    ]
    assert found == [(arm, ids) for ids in (["a", "b"], ["c"]) for arm in arms]
    assert read_runs(tmp_path / "runs").num_rows == 6


@pytest.mark.slow
def test_a_graph_that_eager_takes_long_for_has_a_record_under_the_first_arm_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, large = tmp_path / "data", Value("float32", (2048, 2048))
    quick, slow = chain("quick", 2, "cv"), chain("slow", 20, "cv")
    slow = dataclasses.replace(
        slow,
        inputs=tuple(dataclasses.replace(each, value=large) for each in slow.inputs),
        ops=tuple(dataclasses.replace(each, results=(large,)) for each in slow.ops),
    )
    graphs = [
        {**sample_to_row(sample), "tags": ["small"], "flops": place}
        for place, sample in enumerate((quick, slow))
    ]
    write_table(graphs, data / "cv" / "train-0000.parquet")
    write_readme(data)
    monkeypatch.setattr("builder.arms.MAX_CALL_S", 0.02)
    found = [
        (name, records["sample_id"][:])
        for name, records in measure(
            data, tmp_path / "runs", ["eager", "torchscript"], budget_s=0.05
        )
    ]
    assert found == [("eager", ["quick", "slow"]), ("torchscript", ["quick"])]


@pytest.mark.slow
def test_records_of_a_graph_that_has_changed_since_are_not_shipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = tmp_path / "data", tmp_path / "data" / "cv" / "train-0000.parquet"
    kept, changing = ({**sample_to_row(chain(name, 2, "cv")), "tags": ["small"]} for name in "ab")
    write_table([kept, changing], path)
    write_readme(data)
    ((_, first),) = measure(data, tmp_path / "first", ["eager"], budget_s=0.05)
    assert ship_runs(tmp_path / "first", data)["sample_id"].to_pylist() == ["a", "b"]
    assert "left out" not in capsys.readouterr().err
    inputs = [{**each, "mean": 0.5, "std": 0.5} for each in changing["inputs"]]
    write_table([kept, {**changing, "inputs": inputs}], path)
    assert ship_runs(tmp_path / "first", data)["sample_id"].to_pylist() == ["a"]
    assert "1 record omitted, because their graphs have changed since" in capsys.readouterr().err
    ((_, again),) = measure(data, tmp_path / "second", ["eager"], budget_s=0.05)
    assert again["run_id"][0] == first["run_id"][0]
    assert again["run_id"][1] != first["run_id"][1]
    assert ship_runs(tmp_path / "second", data).num_rows == 2


# What the package holds.


@pytest.fixture(scope="module")
def embedded() -> dict[str, pa.Table]:
    return split_arms(as_table(EMBEDDED / "runs").filter(pc.field("device") == "cpu"))


def test_hundreds_of_graphs_are_timed_under_each_of_many_arms(
    embedded: dict[str, pa.Table],
) -> None:
    graphs = {name: len(set(rows["sample_id"].to_pylist())) for name, rows in embedded.items()}
    assert {name: rows.num_rows for name, rows in embedded.items()} == graphs
    assert sum(count >= 200 for count in graphs.values()) >= 8, graphs
    assert max(count for name, count in graphs.items() if name.startswith("inductor")) >= 120
    names = ("id", "framework", "tags", "why_excluded", "calibration")
    columns = read_columns(EMBEDDED, names)
    small = {
        row["id"]
        for row in columns
        if row["framework"] == "torch"
        and "small" in (row["tags"] or ())
        and not row["why_excluded"]
        and row["calibration"]  # others were captured after the records
    }
    assert sum(small <= set(rows["sample_id"].to_pylist()) for rows in embedded.values()) >= 8


def test_records_describe_the_machine_and_its_load(
    embedded: dict[str, pa.Table],
) -> None:
    rows = pa.concat_tables(embedded.values(), promote_options="default")
    structures = {
        row["id"]: row["structure_hash"] for row in read_columns(EMBEDDED, ("id", "structure_hash"))
    }
    for row in rows.select(
        ["sample_id", "structure_hash", "status", "baseline_latency_ms", "candidate_latency_ms",
         "load", "environment", "error_message", "dataset"]
    ).to_pylist():  # fmt: skip
        assert structures[row["sample_id"]] == row["structure_hash"]
        assert row["dataset"] == "graphnet"
        assert json.loads(row["environment"])["cpu"]["model"]
        if row["status"] == "ok":
            assert len(row["baseline_latency_ms"]) == len(row["candidate_latency_ms"]) >= 10
            assert row["load"] is not None
        else:
            assert row["error_message"]
            assert "site-packages" not in row["error_message"]


def test_every_record_is_of_its_row_as_it_stands(embedded: dict[str, pa.Table]) -> None:
    told = {
        (name, digest)
        for rows in embedded.values()
        for name, digest in zip(
            rows["sample_id"].to_pylist(), rows["sample_digest"].to_pylist(), strict=True
        )
    }
    now = samples(tuple(sorted({name for name, _ in told})))
    assert told == {(name, sample_digest(sample)) for name, sample in now.items()}


def test_eager_is_as_fast_as_itself(embedded: dict[str, pa.Table]) -> None:
    """The noise floor of all other arms: intervals miss 1 seldom, on both sides alike."""
    (rows,) = (rows for name, rows in embedded.items() if name.startswith("eager"))
    timed = rows.filter(pc.field("status") == "ok")
    speedups = timed["speedup"].to_numpy()
    faster = np.mean(timed["speedup_low"].to_numpy() > 1)
    slower = np.mean(timed["speedup_high"].to_numpy() < 1)
    assert len(speedups) >= 150
    assert abs(np.log(np.median(speedups))) < 0.005
    assert abs(np.log(speedups).mean()) < 0.01
    assert max(faster, slower) < 0.08, (faster, slower)


def test_records_of_a_gpu_describe_its_state() -> None:
    rows = as_table(EMBEDDED / "runs").filter(pc.field("device") != "cpu").to_pylist()
    assert {row["compiler"] for row in rows} >= {"eager", "inductor", "cudagraphs"}
    for row in rows:
        assert json.loads(row["environment"])["gpu"]["name"]
        assert row["clock"] == "cuda_event"
        assert row["device_before"]["sm_clock_mhz"] > 0
        assert row["baseline_kernel_ms"] > 0


def test_docs_have_the_tables_of_the_records() -> None:
    runs = as_table(EMBEDDED / "runs")
    text = (Path(__file__).parents[2] / "docs" / "compilers.md").read_text()
    for line in (*table_of_arms(runs), *table_of_breaking(runs, EMBEDDED)):
        assert line in text


def test_the_command_line_knows_them_by_name() -> None:
    result = CliRunner().invoke(app, ["score", "graphnet", "--compiler", "torchscript"])
    assert result.exit_code == 0
    assert re.search(r"^torchscript +\d+", result.output, re.MULTILINE)
