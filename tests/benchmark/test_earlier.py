"""What is done already is told, and so is what only looks like it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark import read_runs, run
from graphnet_datasets.benchmark.records import environment
from graphnet_datasets.benchmark.records.earlier import describe_others, find_differences
from tests.benchmark.samples import LINEAR, make_sample, quick

SETTINGS = quick(has_profile=False, has_oracle=False, alone_calls=1)
COMPILER = "def compile(module, example_inputs):\n    return {call}\n"


def time_it(compiler: str, out: Path, caplog: pytest.LogCaptureFixture, **more: Any) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "graphnet_datasets"):
        run(LINEAR, compiler, out=out, settings=SETTINGS, **more)
    return [record.message for record in caplog.records]


@pytest.mark.slow
def test_an_edited_compiler_is_measured_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "mine.py", tmp_path / "runs"
    monkeypatch.chdir(tmp_path)
    file.write_text(COMPILER.format(call="module"))
    assert time_it("mine.py:compile", out, caplog) == []
    assert time_it("mine.py:compile", out, caplog) == [
        "All runs (1) are already done. Choose another `out` to repeat them."
    ]
    file.write_text(COMPILER.format(call="lambda **inputs: module(**inputs) * 2"))
    (message,) = time_it("mine.py:compile", out, caplog)
    first, second = read_runs(out).to_pylist()
    assert first["compiler_source"] != second["compiler_source"] is not None
    assert (first["min_t"] < -6, second["min_t"] > -3) == (True, True)
    assert message == (
        "1 finished run differs from this request in `compiler_source` "
        f"({first['compiler_source']}, now {second['compiler_source']}). "
        "The samples run again, and both records stay."
    )
    file.write_text(COMPILER.format(call="module"))
    assert len(time_it("mine.py:compile", out, caplog)) == 1
    assert read_runs(out).num_rows == 2


@pytest.mark.slow
def test_differences_between_environments_are_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert time_it("eager", tmp_path, caplog) == []
    monkeypatch.setattr(environment, "PACKAGES", ("torch",))
    (message,) = time_it("eager", tmp_path, caplog)
    assert message.startswith("1 finished run differs from this request in `environment.pack")
    assert read_runs(tmp_path).num_rows == 2


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_overridden_variables_do_not_change_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = environment.describe_environment()
    monkeypatch.setenv(name, "7")
    assert environment.describe_environment() == before
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    assert environment.describe_environment() != before


def test_another_request_is_no_difference() -> None:
    base = {
        "sample_id": "a", "compiler": "x", "compiler_options": "{}", "device": "cpu",
        "settings": "{}", "compiler_version": "1", "compiler_source": None,
        "sample_digest": None, "environment": json.dumps({"cpu": {"model": "A"}, "python": "3"}),
    }  # fmt: skip
    other = {**base, "environment": json.dumps({"cpu": {"model": "B"}, "python": "3"})}
    assert describe_others([other, {**other, "sample_id": "b"}], [base]) == [
        "1 finished run differs from this request in `environment.cpu.model` (A, now B). "
        "The samples run again, and both records stay."
    ]
    assert describe_others([{**other, "settings": '{"seed": 1}'}], [base]) == []
    assert find_differences(base, {**base, "compiler_version": "2"}) == [
        "`compiler_version` (1, now 2)"
    ]


def test_partly_finished_runs_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(LINEAR, "eager", out=tmp_path, settings=SETTINGS)
    other = make_sample("other", *LINEAR.ops, inputs=LINEAR.inputs)
    with caplog.at_level(logging.WARNING, "graphnet_datasets"):
        run([LINEAR, other], "eager", out=tmp_path, settings=SETTINGS)
    assert "1 of 2 runs already done; running the rest." in caplog.messages
