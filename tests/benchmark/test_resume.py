"""Runs that are killed or stopped, and continued by the same command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark import read_runs, run
from graphnet_datasets.cli.app import app
from graphnet_datasets.isolation import descendants
from graphnet_datasets.storage.table import write_table
from tests.benchmark.samples import LINEAR, make_sample, quick
from tests.waiting import wait_until_gone

ROOT = Path(__file__).parents[2]
SAMPLES = [make_sample(f"relu{index}", *LINEAR.ops, inputs=LINEAR.inputs) for index in range(5)]


def start(command: list[str], out: Path) -> subprocess.Popen[str]:
    """Start a run in a separate process and wait until two of its records are there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "graphnet_datasets", *command],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A suite that a shell started in the background ignores Ctrl-C, and would pass that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while len(list((out / "parts").glob("*.parquet"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_the_same_command_continues_where_a_stopped_one_was(
    tmp_path: Path, how: signal.Signals
) -> None:
    table, out = tmp_path / "samples.parquet", tmp_path / "runs"
    write_table(SAMPLES, table)
    command = [
        "--quiet", "run", str(table), "--compiler", "tests.candidates:takes_half_a_second",
        "--out", str(out), "--threads", "1", "--budget", "0.05", "--precision", "0.5",
    ]  # fmt: skip
    process = start(command, out)
    below = descendants(process.pid)
    os.kill(process.pid, how)
    _, said = process.communicate()
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert said == (
            f"Stopped. Finished runs are in `{out}`; the same command continues from there.\n"
        )
    for pid in below:
        wait_until_gone(pid)

    stopped = {row["run_id"]: row for row in read_runs(out).to_pylist()}
    assert 2 <= len(stopped) < 5
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    runs = read_runs(out)
    # Two of them may be under way at once, and records are read in order of start.
    assert sorted(runs["sample_id"].to_pylist()) == [sample.id for sample in SAMPLES]
    assert set(runs["status"].to_pylist()) == {"ok"}
    for row in runs.to_pylist():
        assert row == stopped.get(row["run_id"], row)


@pytest.mark.slow
def test_other_settings_are_other_runs(tmp_path: Path) -> None:
    first = run(LINEAR, "eager", out=tmp_path, settings=quick())
    second = run(LINEAR, "eager", out=tmp_path, settings=quick(), seed=1)
    again = run(LINEAR, "eager", out=tmp_path, settings=quick())
    assert first["run_id"] != second["run_id"]
    assert again.to_list() == first.to_list()
    assert read_runs(tmp_path).num_rows == 2
