"""What the time of a run went into, as `graphnet run --profile` prints it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark import TimeSpent
from graphnet_datasets.cli.app import app
from graphnet_datasets.storage.table import write_table
from tests.benchmark.samples import LINEAR


@pytest.mark.slow
def test_a_run_prints_each_of_its_phases(tmp_path: Path) -> None:
    table = tmp_path / "samples.parquet"
    write_table([LINEAR], table)
    command = (
        f"--quiet run {table} --compiler eager --compiler torchscript --out {tmp_path / 'runs'} "
        "--threads 1 --budget 0.05 --precision 0.5 --profile"
    )
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.output
    start = result.stdout.index("Where the time went")
    title, header, *rows = result.stdout[start:].partition("\n\n")[0].splitlines()
    assert title == "Where the time went, in seconds:"
    assert header.split() == ["phase", "eager", "torchscript", "all", "share"]
    cells = {row[0]: row[1:] for row in (re.split(r"\s{2,}", line) for line in rows)}
    expected = [
        "start processes", "load", "eager untimed", "eager first", "compile", "time in pairs",
        "count kernels",
        "eager alone: load", "eager alone: repeat calls", "eager alone: time",
        "eager alone: float64", "judge", "everything else", "all",
    ]  # fmt: skip
    # A doubted time is measured again, which may add phases and seconds.
    assert [phase for phase in cells if phase in expected] == expected
    sums = [float(row[-2]) for row in cells.values()]
    assert abs(sum(sums[:-1]) - sums[-1]) < 0.1 * len(sums)
    assert cells["all"][-1] == "100%"


def test_on_several_devices_the_phases_of_each_add_up() -> None:
    now = iter([0.0, 1.0, 1.0, 5.0, 5.0, 5.0]).__next__
    spent = TimeSpent(now)
    for device in range(2):
        spent.enter(f"sample {device}", "eager", "run")
    for device in range(2):
        spent.add({"sample_id": f"sample {device}"})
    assert spent.seconds() == {("eager", "run"): 8.0}
    assert str(spent).splitlines()[-1].split() == ["all", "8.0", "8.0", "100%"]
