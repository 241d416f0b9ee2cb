"""A run is made once more from its record."""

from __future__ import annotations

import dataclasses
import json
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
from graphnet_datasets.benchmark.again import check_names
from graphnet_datasets.benchmark.executors.sample_runner import SampleJob, SampleRunner
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import RunError, UntrustedCodeError
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
    again = run_again(out / before["run_id"], out=out, dataset=table)
    assert again.num_calls == len(before["judged"])
    assert (again.num_baseline_equal, again.num_candidate_equal) == (again.num_calls,) * 2
    assert again.differences == []
    assert again.record["status"] == "ok"
    assert [again.record[name] for name in ("seed", "settings", "sample_digest")] == [
        before[name] for name in ("seed", "settings", "sample_digest")
    ]
    assert read_runs(out).num_rows == 3
    assert "gave the same bits" in str(again)


@pytest.mark.slow
def test_the_command_prints_the_result(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    run(LINEAR, "eager", out=out, settings=SETTINGS)
    (record,) = read_runs(out).to_pylist()
    assert record["dataset"] is None
    with pytest.raises(RunError, match="Pass the dataset with `--dataset`"):
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
    with pytest.raises(RunError, match="has changed since the record"):
        run_again(record, dataset=table)


def test_one_record_is_named_by_its_id(tmp_path: Path) -> None:
    run([LINEAR, WORDS], "eager", out=tmp_path, settings=SETTINGS)
    with pytest.raises(RunError, match=r"contains 2 runs\. Pass one by its id"):
        load_record(tmp_path)
    with pytest.raises(RunError, match="contains no run `none`"):
        load_record(tmp_path / "none")
    run_id = read_runs(tmp_path)["run_id"][1].as_py()
    assert load_record(tmp_path / run_id)["run_id"] == run_id


@pytest.mark.parametrize("change", [{}, {"seed": 5}, {"phase_timeouts_s": {"run": 7.0}}])
def test_settings_come_back_from_a_record(change: dict[str, Any]) -> None:
    settings = dataclasses.replace(SETTINGS, **change)
    assert Settings.from_json(settings.to_json()) == settings
    with pytest.raises(RunError, match="There is no setting `pace` in this version"):
        Settings.from_json({**settings.to_json(), "pace": 1})


@pytest.mark.slow
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


@pytest.fixture
def record(tmp_path: Path, table: Path) -> dict[str, Any]:
    run([str(table)], "eager", out=tmp_path / "runs", settings=SETTINGS)
    records = read_runs(tmp_path / "runs").to_pylist()
    return next(row for row in records if row["sample_id"] == LINEAR.id)


@pytest.mark.slow
@pytest.mark.usefixtures("unconfined")
def test_a_record_does_not_choose_imports(
    record: dict[str, Any], table: Path, tmp_path: Path
) -> None:
    evil, mark = tmp_path / "evil.py", tmp_path / "mark"
    evil.write_text(
        f"open({str(mark)!r}, 'w').close()\ndef compile(module, inputs):\n    return module\n"
    )
    hostile = {**record, "compiler": f"{evil}:compile", "compiler_options": "{}"}
    message = r"The record names the compiler `.*evil\.py:compile`.*pass `--trust-remote-code`"
    with pytest.raises(UntrustedCodeError, match=message):
        run_again(hostile, dataset=table)
    assert not mark.exists()
    again = run_again(hostile, dataset=table, trust_remote_code=True)
    assert again.record["status"] == "ok"
    assert mark.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compiler": "os:system"}, "the compiler `os:system`"),
        ({"dataset": "/home/me/secret.parquet"}, "the dataset `/home/me/secret.parquet`"),
        ({"dataset": "https://example.org/beacon.parquet"}, "the dataset `https://"),
        ({"dataset": "someone/else"}, "the dataset `someone/else`"),
        ({"sample_id": "@/etc/passwd"}, "the sample `@/etc/passwd`"),
        ({"sample_id": "./here"}, "the sample `./here`"),
        (
            {"compiler": "inductor", "options": {"config": {"cpp.cxx": ["/evil.sh"]}}},
            "the option `config = ",
        ),
        ({"compiler": "tvm-tuned", "options": {"records": "evil"}}, "the option `records = "),
        ({"compiler": "tvm-oneshot", "options": {"predictor": "e"}}, "the option `predictor = "),
        ({"compiler": "dispatch", "options": {"runs": "evil"}}, "the option `runs = "),
        ({"compiler": "tc", "options": {"cache": "/home/me/.bashrc"}}, "the option `cache = "),
    ],
)
def test_names_of_a_record_lead_nowhere(changes: dict[str, Any], message: str) -> None:
    plain = {
        "compiler": "eager", "framework": "torch", "dataset": "graphnet", "sample_id": "timm/a",
    }  # fmt: skip
    check_names(plain, {"level": 1}, is_dataset_named=False)
    options = changes.pop("options", {})
    with pytest.raises(UntrustedCodeError, match=f"The record names {message}"):
        check_names({**plain, **changes}, options, is_dataset_named=False)


def test_declared_choices_of_a_record_are_taken() -> None:
    plain = {
        "compiler": "inductor", "framework": "torch", "dataset": "graphnet", "sample_id": "timm/a",
    }  # fmt: skip
    options = {"mode": "max-autotune", "freezing": True, "config": {}, "dynamic": "auto"}
    check_names(plain, options, is_dataset_named=False)


def test_settings_of_a_record_do_not_trust_the_sample(record: dict[str, Any], table: Path) -> None:
    trusting = dataclasses.replace(SETTINGS, trust_remote_code=True)
    hostile = {**record, "settings": json.dumps(trusting.to_json())}
    again = run_again(hostile, dataset=table)
    assert json.loads(again.record["settings"])["trust_remote_code"] is False
