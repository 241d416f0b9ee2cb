"""Records of every compiler as a table of the dataset, and which operator breaks which compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builder.__main__ import main
from builder.arms import ARMS, candidates, measure, ship_runs, table_of_breaking
from builder.breaking import BEGIN, END, breaking
from graphnet_datasets import load_dataset
from graphnet_datasets.benchmark.records.records import rows_to_table, write_runs
from graphnet_datasets.compilers.registry import find_entry
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.runs import empty_run
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import write_table
from tests.tables import chain

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


def test_the_quickest_graphs_come_first_and_unknown_costs_are_left_out() -> None:
    rows = [
        {"id": "slow", "tags": [], "flops": 100},
        {"id": "quick", "tags": None, "flops": 1},
        {"id": "huge", "tags": [], "flops": 101},
        {"id": "data", "tags": [], "flops": None},
        {"id": "small", "tags": ["small"], "flops": 1000},
    ]
    assert [row["id"] for row in candidates(rows, 100)] == ["small", "quick", "slow"]


def test_every_arm_names_a_compiler_of_its_framework_and_options_that_it_has() -> None:
    assert len(ARMS) >= 8
    for framework, compiler, options in ARMS.values():
        found = find_entry(compiler, framework).load()
        assert found.framework == framework
        assert options.keys() <= found.option_table.keys()
    with pytest.raises(GraphNetError, match="There is no arm `gcc`"):
        next(measure(Path("x"), Path("y"), ["gcc"]))


def test_records_become_a_config_and_the_table_of_what_breaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, text = tmp_path / "data", tmp_path / "page.md"
    write_table([chain("a", 2, "cv"), chain("b", 3, "cv")], out / "cv" / "train-0000.parquet")
    write_readme(out)
    runs = [
        {**empty_run(), "run_id": str(number), "sample_id": name, "compiler": "tvm",
         "status": status, "framework": "torch", "device": "cpu", "compiler_options": "{}",
         "task": "cv", "started_at": str(9 - number)}
        for number, (name, status) in enumerate([("a", "ok"), ("b", "compile_failed")])
    ]  # fmt: skip
    for order in (1, -1):
        write_runs(rows_to_table(runs[::order]), tmp_path / f"runs{order}.parquet")
    shipped = ship_runs(tmp_path / "runs1.parquet", out)
    path = out / "runs" / "train-0000.parquet"
    first = path.read_bytes()
    ship_runs(tmp_path / "runs-1.parquet", out)
    assert path.read_bytes() == first
    assert load_dataset(out, "runs", "all")["sample_id"][:] == ["a", "b"]
    assert table_of_breaking(shipped, out)[2:] == ["| tvm | not told by an operator | 1 | | |"]
    text.write_text(f"{BEGIN}\n{END}\n")
    assert (
        main(["runs", str(tmp_path / "runs1.parquet"), "--out", str(out), "--docs", str(text)]) == 0
    )
    assert "| tvm | not told by an operator | 1 | | |" in text.read_text()
    assert "| tvm | not told" in capsys.readouterr().out


def test_what_the_dataset_has_records_of_is_not_timed_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    graph = {**sample_to_row(chain("a", 2, "cv")), "tags": ["small"]}
    write_table([graph], data / "cv" / "train-0000.parquet")
    write_readme(data)
    ((name, first),) = measure(data, tmp_path / "first", ["eager"], budget_s=0.05)
    assert (name, first["status"][:]) == ("eager", ["ok"])
    ship_runs(tmp_path / "first", data)
    ((_, again),) = measure(data, tmp_path / "second", ["eager"], budget_s=0.05)
    assert again["started_at"][:] == first["started_at"][:]
