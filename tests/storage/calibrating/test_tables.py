"""Calibrating the rows of tables, each in a separate process."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets import Sample, load_dataset, translate
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import DatasetNotFoundError, RunError
from graphnet_datasets.sample import Input, Op, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema.graphs import CALIBRATION_COLUMNS
from graphnet_datasets.storage.calibrating import (
    CALIBRATION_LIMITS,
    calibrate_rows,
    calibrate_tables,
)
from graphnet_datasets.storage.parts import encode_part, read_notes
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.storage.table import ROW_GROUP_SIZE, read_table, write_table


def linear(name: str, std: float, width: int = 16) -> Sample:
    weight = Input("parameter", Value("float32", (16, width)), statistics=Statistics(0.0, std))
    return Sample(
        name, "torch", "other", (Input("input", Value("float32", (4, 16))), weight),
        (Op("torch.nn.functional.linear", (Ref(0), Ref(1))),), Ref(2),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.torch
def test_rows_of_a_file_are_calibrated_in_place_and_once(tmp_path: Path) -> None:
    samples = [linear("a/fits", 0.25), linear("a/large", 90.0), linear("a/broken", 1.0, width=3)]
    path = write_table(samples, tmp_path / "graphs.parquet")
    before = read_table(path).to_pylist()
    seen: list[tuple[int, int]] = []
    report = calibrate_tables(path, jobs=1, on_progress=lambda *each: seen.append(each))
    assert report.counts == {"calibrated": 1, "unneeded": 1, "none": 1}
    assert list(report.failures) == ["a/broken"]
    assert seen[-1] == (3, 3)
    rows = read_table(path).to_pylist()
    for row, old in zip(rows, before, strict=True):
        changed = {name for name in row if row[name] != old[name]}
        assert changed <= set(CALIBRATION_COLUMNS)
        figures = (row["input_sensitivity"], row["signal_outcome"])
        assert figures == (None, None) if row["calibration"] is None else figures[0] > 1
    fitted = Sample.from_row(load_dataset(path, split="train")[1])
    assert fitted.inputs[1].origin == "calibrated"
    assert dataclasses.replace(fitted, inputs=samples[1].inputs, calibration="") == samples[1]
    written = path.read_bytes()
    assert calibrate_tables(path, jobs=1).counts["calibrated"] == 1
    assert path.read_bytes() == written, "what is done stays"


@pytest.mark.torch
def test_rows_of_several_row_groups_are_calibrated(tmp_path: Path) -> None:
    rows = [linear(f"a/{number}", 90.0).to_row() for number in range(2 * ROW_GROUP_SIZE + 1)]
    done = {0, ROW_GROUP_SIZE, 2 * ROW_GROUP_SIZE}
    before = [
        {**row, "calibration": None if place in done else "unneeded"}
        for place, row in enumerate(rows)
    ]
    path = write_table(before, tmp_path / "graphs.parquet")
    report = calibrate_tables(path, jobs=1)
    assert report.counts == {"calibrated": 3, "unneeded": len(rows) - 3}
    after = read_table(path)
    assert after["id"].to_pylist() == [row["id"] for row in rows]
    calibrations = after["calibration"].to_pylist()
    assert {place for place, name in enumerate(calibrations) if name == "calibrated"} == done


@pytest.mark.slow
@pytest.mark.torch
def test_a_stop_loses_no_graph_that_was_done(tmp_path: Path) -> None:
    samples = [linear(f"a/{number}", 90.0 - 30 * number) for number in range(3)]
    path = write_table(samples, tmp_path / "graphs.parquet")
    before = path.read_bytes()

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate_tables(path, jobs=1, on_progress=stop)
    assert path.read_bytes() == before
    parts = tmp_path / ".graphs.parquet.calibration" / "parts"
    first, second = sorted(parts.iterdir(), key=lambda part: read_notes(part)["items"][0]["name"])
    notes = read_notes(first)
    notes["items"][0]["notes"]["calibration"] = "unneeded"  # resumed results are not made again
    first.write_bytes(encode_part([], notes))
    broken = parts / "broken.arrow"
    broken.write_bytes(second.read_bytes()[:100])
    assert calibrate_tables(path, jobs=1).counts["unneeded"] >= 1
    rows = read_table(path).to_pylist()
    assert rows[0]["calibration"] == "unneeded"
    assert all(row["calibration"] for row in rows)
    assert not parts.exists()


@pytest.mark.torch
def test_a_result_of_another_row_or_option_is_not_used(tmp_path: Path) -> None:
    staging = Staging(tmp_path / "rows", "calibration")
    rows = [linear("a/one", 90.0).to_row()]
    calls = ((rows, 1e12), (rows, 1e12), (rows, 1e11), ([linear("a/one", 80.0).to_row()], 1e12))
    numbers = []
    for these, max_flops in calls:
        (row,) = calibrate_rows(these, jobs=1, max_flops=max_flops, staging=staging)
        assert row.row["calibration"] == "calibrated"
        numbers.append(len([*staging.parts.iterdir()]))
    assert numbers == [1, 1, 2, 3]


@pytest.mark.torch
def test_a_graph_that_gives_nan_on_any_inputs_is_named_and_one_that_masks_is_not() -> None:
    data = Input("input", Value("float32", (4, 6)), statistics=Statistics(0.0, 1.0))

    def sample(name: str, *ops: Op) -> Sample:
        return Sample(f"a/{name}", "torch", "other", (data,), ops, Ref(len(ops)))

    positive = Op("operator.gt", (Ref(0), 0))
    rows = [
        sample("root", Op("torch.sqrt", (Ref(0),))),
        sample("mask", positive, Op("torch.Tensor.masked_fill", (Ref(0), Ref(1), -math.inf))),
        sample("power", Op("operator.mul", (Ref(0), 1000.0)), Op("torch.exp", (Ref(1),))),
        sample("plain", Op("torch.tanh", (Ref(0),))),
    ]
    found = calibrate_rows([each.to_row() for each in rows], jobs=1)
    reasons = {each.row["id"]: each.reason for each in found}
    assert "NaN elements. The graph fails as a baseline" in reasons["a/root"]
    assert "infinite elements. The graph fails as a baseline" in reasons["a/power"]
    assert reasons["a/mask"] == reasons["a/plain"] == ""


def test_a_graph_that_is_too_large_is_named() -> None:
    row = linear("a/large", 1.0).to_row()
    (found,) = calibrate_rows([row], max_input_bytes=1000)
    assert found.row == row
    assert found.is_too_large
    assert found.reason == "its inputs take 0.0 GiB; 0.0 are allowed"


@pytest.mark.torch
def test_a_graph_that_takes_too_much_memory_is_named_before_it_does() -> None:
    wide = Input("input", Value("float32", (2**14, 16)), statistics=Statistics(0.0, 1.0))
    ops = (Op("torch.matmul", (Ref(0), Ref(1))), Op("torch.sum", (Ref(2),)))
    turned = dataclasses.replace(wide, value=Value("float32", (16, 2**14)))
    sample = Sample("a/wide", "torch", "other", (wide, turned), ops, Ref(3))
    limits = dataclasses.replace(CALIBRATION_LIMITS, memory_bytes=2**29)
    (found,) = calibrate_rows([sample.to_row()], jobs=1, limits=limits)
    assert found.is_too_large
    assert re.search(r"of `a/wide` .* to 1\.07\d GB; the limit is 0\.53\d GB", found.reason)


@pytest.mark.torch
def test_a_graph_of_many_operations_is_run_at_smaller_sizes() -> None:
    held = linear("a/held", 90.0)
    symbolic = dataclasses.replace(
        held,
        inputs=(
            Input("symbol", Value("int64", ()), source_name="s0"),
            dataclasses.replace(held.inputs[0], value=Value("float32", ("s0", 16))),
            held.inputs[1],
        ),
        ops=(dataclasses.replace(held.ops[0], args=(Ref(1), Ref(2))),),
        outputs=Ref(3),
        symbols=(Symbol("s0", 64, 1),),
    )
    rows = [held.to_row() | {"flops": 2048}, symbolic.to_row() | {"flops": 32768}]
    for found in calibrate_rows(rows, jobs=1, max_flops=200.0):
        assert found.reason == ""
        assert found.row["calibration"] == "shared"
        fitted = Sample.from_row(found.row)
        (changed,) = [each for each in fitted.inputs if each.calibrated is not None]
        assert changed.role == "parameter"
        assert changed.calibrated.std < 1.0  # pyright: ignore[reportOptionalOperand]
    fixed = dataclasses.replace(
        held,
        inputs=(
            dataclasses.replace(held.inputs[0], value=Value("float32", (1, 16))),
            held.inputs[1],
        ),
    )
    whole = [fixed.to_row() | {"flops": 512}]
    (found,) = calibrate_rows(whole, jobs=1, max_flops=200.0)
    assert found.row["calibration"] == "calibrated", "it is not far too large"
    (found,) = calibrate_rows(whole, jobs=1, max_flops=100.0)
    assert found.is_too_large
    assert found.reason.startswith("it takes too many operations, and cannot be run at smaller")
    (found,) = calibrate_rows(rows[:1], jobs=1, max_flops=100.0)
    assert found.is_too_large
    assert "still takes 0.0 billion as `a/held/symbolic/batch=1" in found.reason


@pytest.mark.torch
def test_large_graphs_share_calibration_of_equal_weights(
    tmp_path: Path,
) -> None:
    large = linear("a/large", 90.0)
    data = dataclasses.replace(large.inputs[0], value=Value("float32", (4096, 16)))
    large = dataclasses.replace(large, inputs=(data, large.inputs[1]))
    (tmp_path / "other").mkdir()
    write_table([large, linear("a/broken", 1.0, width=3)], tmp_path / "other" / "train-0.parquet")
    (tmp_path / "cv").mkdir()
    write_table([linear("a/small", 90.0)], tmp_path / "cv" / "train-0.parquet")
    report = calibrate_tables(tmp_path, jobs=1, max_input_bytes=100_000)
    assert report.counts == {"calibrated": 1, "shared": 1, "none": 1}
    assert list(report.failures) == ["a/broken"]
    (row, _) = read_table(tmp_path / "other" / "train-0.parquet").to_pylist()
    (small,) = read_table(tmp_path / "cv" / "train-0.parquet").to_pylist()
    assert row["calibration"] == "shared"
    assert row["calibrated_inputs"] == small["calibrated_inputs"]
    again = calibrate_tables(tmp_path, jobs=1)
    assert again.counts["shared"] == 1, "what has statistics keeps them"


def test_a_place_without_tables_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="has no table of graphs"):
        calibrate_tables(tmp_path)


@pytest.mark.torch
def test_the_command_prints_a_summary(tmp_path: Path) -> None:
    path = write_table([linear("a/large", 90.0)], tmp_path / "graphs.parquet")
    result = CliRunner().invoke(app, ["--quiet", "calibrate", str(path), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert result.output.strip().endswith("graphs.parquet: 1 calibrated")
    assert read_table(path)["calibration"].to_pylist() == ["calibrated"]


@pytest.mark.torch
def test_a_device_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = write_table([linear("a/large", 90.0)], tmp_path / "graphs.parquet")
    with pytest.raises(
        RunError, match=r"CUDA is not available|Cannot calibrate on the device `cuda:99`: "
    ):
        calibrate_tables(path, device="cuda:99")
    result = CliRunner().invoke(app, ["calibrate", str(path), "--device", "cuda:99"])
    assert result.exit_code != 0
    assert read_table(path)["calibration"].to_pylist() == [None]


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.paddle
def test_graphs_of_another_framework_than_torch_stay_on_the_cpu(tmp_path: Path) -> None:
    paddle = translate(linear("a/large", 90.0))
    path = write_table([paddle], tmp_path / "graphs.parquet")
    assert calibrate_tables(path, device="cuda:99", jobs=1).counts == {"calibrated": 1}


@pytest.mark.torch
@pytest.mark.gpu
def test_calibration_on_a_gpu_agrees_with_the_cpu(tmp_path: Path) -> None:
    samples = [linear("a/fits", 0.25), linear("a/large", 90.0), linear("a/broken", 1.0, width=3)]
    found = []
    for device in ("cpu", "cuda"):
        path = write_table(samples, tmp_path / device / "graphs.parquet")
        report = calibrate_tables(path, device=device, jobs=2)
        assert report.counts == {"calibrated": 1, "unneeded": 1, "none": 1}, report.failures
        found.append(Sample.from_row(read_table(path).to_pylist()[1]).inputs[1].calibrated)
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].std == pytest.approx(found[0].std, rel=1e-3)
