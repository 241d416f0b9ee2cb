"""New runs against stored ones: what is equal, what differs, what is slower, what does not fit."""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark import compare_with_reference, read_runs, run, write_runs
from graphnet_datasets.benchmark.judging.correctness import Output
from graphnet_datasets.benchmark.judging.output_files import OutputStore, write_outputs
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import DatasetNotFoundError, RunError
from graphnet_datasets.sample import Statistics
from graphnet_datasets.schema import empty_run
from graphnet_datasets.storage.table import write_table
from tests.benchmark.samples import BROKEN, LINEAR, make_sample, quick

OTHER = make_sample("other", *LINEAR.ops, inputs=LINEAR.inputs)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference")
    run([LINEAR, BROKEN], "eager", out=path, settings=quick(), keep_outputs=True)
    return path


def store(path: Path, run_id: str, elements: Any, times: list[float], **columns: Any) -> None:
    """Write one run with one output."""
    record = empty_run() | {
        "run_id": run_id, "sample_id": "s", "compiler": "eager", "compiler_version": "1",
        "device": "cpu", "status": "ok", "seed": 0, "input_mode": "replay",
        "weights": "parameters", "candidate_latency_ms": times, "is_deterministic": True,
        "started_at": "2026-01-01", **columns,
    }  # fmt: skip
    path.mkdir(exist_ok=True)
    write_runs([record], path / f"{run_id}.parquet")
    if record["status"] == "ok":
        with Path(path, "file").open("wb") as file:
            output = Output("float32", np.asarray(elements, np.float32))
            write_outputs(file, {"sample_digest": "d"}, [output])
        OutputStore(path).put(run_id, Path(path, "file").read_bytes())


def verdict(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> tuple[str, Any]:
    given = {"elements": [1.0, 2.0], "times": [1.0, 1.01, 0.99, 1.0]}
    store(tmp_path / "old", "a", **(given | old))
    store(tmp_path / "new", "b", **(given | new))
    (row,) = compare_with_reference(tmp_path / "new", tmp_path / "old").rows
    return row["outputs"], row["time"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, ("equal", "same")),
        ({}, {"elements": [1.0, 2.0 + 1e-6]}, ("within", "same")),
        ({}, {"elements": [1.0, 9.0]}, ("differs", "same")),
        ({}, {"elements": [1.0, math.nan]}, ("differs", "same")),
        ({}, {"elements": [[1.0, 2.0]]}, ("differs", "same")),
        ({}, {"elements": [1.0, 9.0], "is_deterministic": False}, ("undetermined", "same")),
        ({}, {"status": "run_failed"}, ("broken", None)),
        ({"status": "run_failed"}, {}, ("fixed", None)),
        ({"status": "run_failed"}, {"status": "run_failed"}, ("failing", None)),
        ({}, {"sample_id": "elsewhere"}, ("missing", None)),
        ({}, {"times": [2.0, 2.01, 1.99]}, ("equal", "slower")),
        ({}, {"times": [0.5, 0.51, 0.49]}, ("equal", "faster")),
        ({}, {"times": [1.03, 1.031, 1.029]}, ("equal", "same")),  # within the threshold
        ({}, {"times": [0.2, 5.0, 1.0, 9.0]}, ("equal", "same")),  # too noisy to tell
    ],
)
def test_verdicts(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any], expected: tuple[str, Any]
) -> None:
    assert verdict(tmp_path, old, new) == expected


def test_regressions_come_worst_first_and_the_newest_stored_run_counts(tmp_path: Path) -> None:
    steady, slow = [1.0, 1.0], [2.0, 2.0]
    for name in ("fine", "slow", "wrong", "gone"):
        store(tmp_path / "old", f"old{name}", [1.0], steady, sample_id=name)
    store(tmp_path / "old", "older", [7.0], slow, sample_id="fine", started_at="2025-01-01")
    store(tmp_path / "new", "newfine", [1.0], steady, sample_id="fine")
    store(tmp_path / "new", "newslow", [1.0], slow, sample_id="slow")
    store(tmp_path / "new", "newwrong", [8.0], steady, sample_id="wrong")
    store(tmp_path / "new", "newgone", [1.0], steady, sample_id="gone", status="compile_failed")
    found = compare_with_reference(tmp_path / "new", tmp_path / "old")
    assert [row["sample_id"] for row in found.regressions] == ["gone", "wrong", "slow"]
    assert {k: v for k, v in found.counts.items() if v} == {
        "broken": 1, "differs": 1, "equal": 2, "slower": 1, "same": 2,
    }  # fmt: skip
    text = str(found)
    assert text.splitlines()[0].split() == [
        "sample", "compiler", "outputs", "min", "t", "time", "speedup", "95", "%",
    ]  # fmt: skip
    assert text.endswith(
        "1 broken, 1 differs, 2 equal, 1 slower, 2 same (outputs at t = -3, times beyond 5%; "
        "speedup is stored time over new time)"
    )
    assert found.to_table().num_rows == 4


def test_no_cell_of_the_written_table_is_a_formula(tmp_path: Path) -> None:
    formula = "=HYPERLINK(A1)"
    store(tmp_path / "old", "a", [1.0], [1.0, 1.0], compiler_version=formula)
    store(tmp_path / "new", "b", [1.0], [1.0, 1.0], compiler_version="+1\n")
    compare_with_reference(tmp_path / "new", tmp_path / "old").write(tmp_path / "verdicts.csv")
    with (tmp_path / "verdicts.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["reference_version"], row["version"]) == (f"'{formula}", "'+1\\n")


def test_a_run_against_a_stored_one_is_equal_and_keeps_its_table(
    tmp_path: Path, reference: Path
) -> None:
    runs = run(
        [LINEAR, BROKEN], "eager", out=tmp_path, settings=quick(num_input_sets=1), against=reference
    )
    found = compare_with_reference(tmp_path, reference, run_ids=runs["run_id"])
    first, second = found.rows
    assert (first["outputs"], first["min_t"], first["max_abs_error"]) == ("equal", -math.inf, 0.0)
    assert first["speedup_low"] <= first["speedup"] <= first["speedup_high"]
    assert (second["outputs"], second["time"]) == ("failing", None)


def test_outputs_that_an_earlier_call_did_not_keep_are_made(tmp_path: Path) -> None:
    (first,) = run(LINEAR, "eager", out=tmp_path, settings=quick()).to_list()
    assert not (tmp_path / "outputs").exists()
    (again,) = run(LINEAR, "eager", out=tmp_path, settings=quick(), keep_outputs=True).to_list()
    assert again["run_id"] == first["run_id"]
    made = tmp_path / "outputs" / f"{first['run_id']}.npz"
    written = made.stat().st_mtime_ns
    run(LINEAR, "eager", out=tmp_path, settings=quick(), keep_outputs=True)
    assert made.stat().st_mtime_ns == written
    assert read_runs(tmp_path).num_rows == 1


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (
            (LINEAR, "eager"),
            {"seed": 1},
            "The run of `test/linear` in `{path}` was made with seed = 0, but this run has 1. Run "
            "with the same `seed`, or create the stored runs again.",
        ),
        (
            (LINEAR, "eager"),
            {"input_mode": "probe"},
            "The run of `test/linear` in `{path}` was made with input_mode = replay, but this "
            "run has probe. Run with the same `input_mode`, or create the stored runs again.",
        ),
        (
            (LINEAR, "aot_eager"),
            {},
            "`{path}` contains runs of `test/linear` under `eager`, but none under `aot_eager`. "
            "Select one of them with `--compiler`, or create runs of `aot_eager` with "
            "`--reference {path}`.",
        ),
        (
            (OTHER, "eager"),
            {},
            "`{path}` contains none of the 1 requested runs. Choose samples that it contains, or "
            "create the runs with `graphnet run … --reference {path}`.",
        ),
        (
            (
                dataclasses.replace(
                    LINEAR,
                    inputs=(
                        dataclasses.replace(
                            LINEAR.inputs[0], statistics=Statistics(mean=3.0, std=1.0)
                        ),
                        LINEAR.inputs[1],
                    ),
                ),
                "eager",
            ),
            {},
            "The sample `test/linear` differs from the sample of the runs in `{path}`: its graph, "
            "statistics or stored data have changed. Use the version of the dataset of those runs, "
            "or create the reference again.",
        ),
    ],
)
def test_incomparable_runs_are_refused_before_anything_runs(
    tmp_path: Path, reference: Path, arguments: Any, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunError) as caught:
        run(*arguments, out=tmp_path, settings=quick(), against=reference, **changes)
    assert str(caught.value) == message.format(path=reference)
    with pytest.raises(DatasetNotFoundError):
        read_runs(tmp_path)


def test_the_command_line_from_reference_to_verdicts(tmp_path: Path) -> None:
    table = tmp_path / "samples.parquet"
    write_table([LINEAR], table)
    command = ["--quiet", "run", str(table), "--threads", "1", "--budget", "0.1"]
    old, new = tmp_path / "old", tmp_path / "new"
    made = CliRunner().invoke(app, [*command, "--reference", str(old)])
    assert made.exit_code == 0, made.output
    assert read_runs(old)["compiler"].to_pylist() == ["eager"]
    again = CliRunner().invoke(
        app, [*command, "--against", str(old), "--out", str(new), "--threshold", "0.99"]
    )
    assert again.exit_code == 0, again.output
    assert f"Against `{old}`; the table is `{new / 'verdicts.csv'}`:" in again.output
    with (new / "verdicts.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["sample_id"], row["outputs"], row["time"]) == ("test/linear", "equal", "same")

    (kept,) = (new / "outputs").iterdir()
    store_of = OutputStore(new)
    described, (output,) = store_of.load(kept.stem)
    wrong = tmp_path / "wrong.npz"
    with wrong.open("wb") as file:
        write_outputs(file, described, [Output("float32", output.elements + 1)])
    store_of.put(kept.stem, wrong.read_bytes())
    differs = CliRunner().invoke(
        app, [*command, "--against", str(old), "--out", str(new), "--threshold", "0.99"]
    )
    assert differs.exit_code == 3, differs.output
    assert "1 differs" in differs.output

    both = CliRunner().invoke(app, [*command, "--reference", str(old), "--out", str(new)])
    assert both.exit_code == 1
    assert both.output.startswith(
        "Error: `--reference` already names the directory of the records."
    )
