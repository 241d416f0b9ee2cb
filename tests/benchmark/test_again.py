"""A run is made once more from its record."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark import (
    Settings,
    TimingSettings,
    load_record,
    read_runs,
    run,
    run_again,
)
from graphnet_datasets.benchmark.executors.sample_runner import SampleJob, SampleRunner
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import RunError
from graphnet_datasets.sample import Statistics
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.table import write_table
from tests.adversarial.test_eager_cheats import WORDS
from tests.benchmark.samples import LINEAR, quick

TIMING = TimingSettings(
    min_pairs=5, max_pairs=5, budget_s=0, hard_budget_s=30, warmup_s=0, min_warmup_calls=1
)
SETTINGS = quick(timing=TIMING, has_profile=False, has_oracle=False, alone_calls=1, seed=11)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_table([LINEAR, WORDS], tmp_path / "samples.parquet")
    return tmp_path / "samples.parquet"


def test_a_record_is_run_again_from_itself(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    run([str(table)], "torchscript", out=out, settings=SETTINGS)
    before = next(row for row in read_runs(out).to_pylist() if row["sample_id"] == WORDS.id)
    assert before["dataset"] == str(table)
    again = run_again(out / before["run_id"], out=out)
    assert again.num_calls == len(before["judged"])
    assert (again.num_baseline_equal, again.num_candidate_equal) == (again.num_calls,) * 2
    assert again.differences == []
    assert again.record["status"] == "ok"
    assert [again.record[name] for name in ("seed", "settings", "sample_digest")] == [
        before[name] for name in ("seed", "settings", "sample_digest")
    ]
    assert read_runs(out).num_rows == 3
    assert "gave the same bits" in str(again)


def test_the_command_says_what_came_of_it(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    run(LINEAR, "eager", out=out, settings=SETTINGS)
    (record,) = read_runs(out).to_pylist()
    assert record["dataset"] is None
    with pytest.raises(RunError, match="Name the dataset with `--dataset`"):
        run_again(record)
    result = CliRunner().invoke(
        app, ["run", "--again", str(out / record["run_id"]), "--dataset", str(table)]
    )
    assert result.exit_code == 0, result.output
    judged = len(record["judged"])
    assert f"Of {judged} calls on the same inputs eager gave the same bits in {judged}" in (
        " ".join(result.output.split())
    )


def test_another_sample_of_the_name_is_refused(table: Path, tmp_path: Path) -> None:
    run([str(table)], "eager", out=tmp_path / "runs", settings=SETTINGS)
    records = read_runs(tmp_path / "runs").to_pylist()
    changed = dataclasses.replace(LINEAR.inputs[0], statistics=Statistics(mean=3, std=1))
    other = dataclasses.replace(LINEAR, inputs=(changed, LINEAR.inputs[1]))
    write_table([other], table)
    record = next(row for row in records if row["sample_id"] == LINEAR.id)
    with pytest.raises(RunError, match="is not the one that the record is of"):
        run_again(record)


def test_one_record_is_named_by_its_id(tmp_path: Path) -> None:
    run([LINEAR, WORDS], "eager", out=tmp_path, settings=SETTINGS)
    with pytest.raises(RunError, match=r"holds 2 runs\. Name one by its id"):
        load_record(tmp_path)
    with pytest.raises(RunError, match="holds no run `none`"):
        load_record(tmp_path / "none")
    run_id = read_runs(tmp_path)["run_id"][1].as_py()
    assert load_record(tmp_path / run_id)["run_id"] == run_id


@pytest.mark.parametrize("change", [{}, {"seed": 5}, {"phase_timeouts_s": {"run": 7.0}}])
def test_settings_come_back_from_a_record(change: dict[str, Any]) -> None:
    settings = dataclasses.replace(SETTINGS, **change)
    assert Settings.from_json(settings.to_json()) == settings
    with pytest.raises(RunError, match="There is no setting `pace` in this version"):
        Settings.from_json({**settings.to_json(), "pace": 1})


def test_a_record_is_there_when_its_arm_has_ended() -> None:
    from graphnet_datasets.benchmark.executors.sample_runner import CandidateCompiler

    runner = SampleRunner("cpu", SETTINGS)
    candidates = [
        (name, CandidateCompiler(name, "torch", {}, "")) for name in ("eager", "torchscript")
    ]
    try:
        records = runner.records(SampleJob(LINEAR, sample_to_row(LINEAR), candidates))
        first = next(records)
        assert (first["compiler"], first["status"], first["min_t"] < -6) == ("eager", "ok", True)
        second = next(records)
    finally:
        runner.close()
    assert (second["compiler"], second["status"]) == ("torchscript", "ok")
    # What is the same for both is made once, and each is judged on inputs of its own.
    assert first["judged"][0]["baseline_hash"] == second["judged"][0]["baseline_hash"]
    seeds = [{each["seed"] for each in record["judged"][1:]} for record in (first, second)]
    assert not seeds[0] & seeds[1]
