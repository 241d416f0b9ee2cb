"""`graphnet push`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from graphnet_datasets import load_dataset, write_directory, write_table
from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.schema import empty_run
from graphnet_datasets.tensor_comprehensions.tables import TC_CACHE_SCHEMA
from tests.hub_server import Hub
from tests.tables import chain, rows, write_dataset

REPO = "org/graphs"
UNCHECKED = ("--skip-validation", "a test")


def call(*arguments: str | Path, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["push", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


def test_a_parquet_file_is_pushed_and_skipped_rows_are_named(hub: Hub, tmp_path: Path) -> None:
    path = write_table(rows("cv", range(1, 4)), tmp_path / "mine.parquet")
    first = call(path, REPO, "--split", "train", *UNCHECKED).stdout.splitlines()
    head = hub.state.repositories[REPO].branches["main"]
    assert first == [
        f"3 added to {REPO}, 0 left out",
        f"{hub.endpoint}/datasets/{REPO}/commit/{head}",
    ]
    again = call(path, REPO)
    assert again.stdout == f"0 added to {REPO}, 3 left out\n"
    assert f"cv/chain-1: `{REPO}` has it already.\n" in again.stderr
    assert load_dataset(REPO, "cv", split="train")["num_ops"][:] == [1, 2, 3]


@pytest.mark.usefixtures("hub")
def test_directories_of_either_kind_are_pushed(tmp_path: Path) -> None:
    write_directory(chain("one/relu", 1, "nlp"), tmp_path / "samples" / "relu")
    dataset = write_dataset(tmp_path / "graphnet")
    result = call(tmp_path / "samples", REPO, "--split", "train", *UNCHECKED)
    assert result.stdout.startswith("1 added")
    result = call(dataset, REPO, "--split", "train", *UNCHECKED)
    # The chains of nlp are those of cv over again, and the first of them is `one/relu`.
    assert result.stdout.startswith(f"24 added to {REPO}, 6 left out\n")
    assert f"cv/chain-1: `{REPO}` has it already as `one/relu`.\n" in result.stderr


@pytest.mark.usefixtures("hub")
def test_a_directory_that_cannot_be_read_does_not_keep_the_others_from_being_pushed(
    tmp_path: Path,
) -> None:
    for name in ("good", "torn"):
        write_directory(chain(f"one/{name}", len(name), "nlp"), tmp_path / "samples" / name)
    (tmp_path / "samples" / "torn" / "model.py").write_text("import os\n")
    result = call(tmp_path / "samples", "org/graphs", *UNCHECKED, exit_code=3)
    assert result.stdout.splitlines()[0] == "1 added to org/graphs, 0 left out"
    errors = result.stderr.splitlines()
    assert errors[-2].startswith(f"{tmp_path}/samples/torn: `{tmp_path}/samples/torn/model.py`")
    assert errors[-1] == "1 directory could not be read"
    (tmp_path / "samples" / "good" / "model.py").unlink()
    result = call(tmp_path / "samples", "org/other", *UNCHECKED, exit_code=1)
    assert "None of the 2 sample directories in" in result.stderr


def test_runs_are_pushed_and_a_contribution_is_a_pull_request(hub: Hub, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    write_runs([{**empty_run(), "run_id": "a", "started_at": "2026"}], runs / "runs.parquet")
    assert call(runs, REPO).stdout.startswith(f"1 added to {REPO}")
    path = write_table(rows("cv", range(1, 2)), tmp_path / "mine.parquet")
    lines = call(path, REPO, "--create-pr", *UNCHECKED).stdout.splitlines()
    assert lines[1] == f"{hub.endpoint}/datasets/{REPO}/discussions/1"


def test_errors_are_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    result = call(missing, REPO, exit_code=1)
    assert result.stderr == f"Error: There is no file or directory `{missing}`.\n"


def test_rows_of_any_other_table_go_to_its_config(hub: Hub, tmp_path: Path) -> None:
    kinds = {"string": "a", "int32": 1, "double": 1.0}
    row = {field.name: kinds.get(str(field.type), []) for field in TC_CACHE_SCHEMA}
    path = tmp_path / "tuned" / "tc_cache.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist([row], TC_CACHE_SCHEMA), path)
    assert call(path, REPO).stdout.startswith(f"1 added to {REPO}, 0 left out\n")
    assert call(path.parent, REPO).stdout == f"0 added to {REPO}, 1 left out\n"
    there = hub.state.repositories[REPO]
    files = there.commits[there.branches["main"]]
    assert any(name.startswith("tc_cache/train-") for name in files)
    result = call(path, REPO, "--split", "test", exit_code=2)
    assert "tuned options of tensor comprehensions go to the config" in result.stderr
    runs = [{**empty_run(), "run_id": "a", "started_at": "2026"}]
    write_runs(runs, path.parent / "mine.parquet")
    result = call(path.parent, REPO, exit_code=1)
    assert "contains records of timed runs and tuned options" in result.stderr
