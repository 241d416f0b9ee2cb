"""Typical mistakes at the command line, each answered by one sentence that leads on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.benchmark.records.records import write_runs

from ..scores.run_rows import FOUR
from ..tables import write_dataset
from .calling import call

GRAPHNET = Path(sys.executable).with_name("graphnet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a dataset, a hidden copy of it, and no runs."""
    write_dataset(tmp_path / "folder")
    write_dataset(tmp_path / "folder" / ".cache")
    return tmp_path / "folder"


@pytest.mark.parametrize("verb", ["score", "plot"])
def test_a_folder_with_tables_but_no_runs(verb: str, folder: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "plots"] if verb == "plot" else []
    result = call(verb, folder, *out, exit_code=1)
    assert result.stderr == (
        f"Error: There are no run records at `{folder}`. The 3 Parquet files there hold other "
        f"tables. Create some with `graphnet run … --out {folder}`.\n"
    )


def test_score_finds_the_runs_among_other_tables(folder: Path) -> None:
    rows = [{**row, "run_id": str(index)} for index, row in enumerate(FOUR)]
    for name in ("runs", ".hidden"):
        (folder / name).mkdir()
        write_runs(rows, folder / name / "runs.parquet")
    assert call("score", folder).stdout.splitlines()[1].split()[:3] == ["inductor", "4", "1"]


@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_hub_that_cannot_be_reached_is_named_at_once(offline: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "HF_HUB_OFFLINE": offline,
        "HF_ENDPOINT": "http://127.0.0.1:9",  # nobody listens
        "HF_HOME": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [GRAPHNET, "list", "cv", "--dataset", "nosuch/nosuch"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "Error: `nosuch/nosuch` cannot be loaded: the Hub (http://127.0.0.1:9) cannot be reached, "
        "and the repository is not in the cache. Check the network, or name a local dataset "
        "(`./…`).\n"
    )
