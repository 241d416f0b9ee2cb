"""`graphnet import` and `export`."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets import Sample, load_dataset, read_directory, write_directory
from graphnet_datasets.cli.counting import PARTLY
from graphnet_datasets.storage.importing import read_report
from tests.exact import exact
from tests.tables import chain, write_dataset

from .calling import call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


@pytest.mark.slow
def test_export_of_all_splits_and_import_are_the_identity(root: Path, tmp_path: Path) -> None:
    output = call("export", tmp_path / "tree", "--dataset", root, "--format", "graphnet").stdout
    assert output == f"30 sample directories written to {tmp_path / 'tree'}\n"
    (found,) = read_directory(tmp_path / "tree" / "cv" / "chain-7")
    expected = chain("cv/chain-7", 7, "cv", source="cv-library")
    assert exact(found) == exact(expected)
    back = tmp_path / "back.parquet"
    result = call("import", tmp_path / "tree", "--out", back, "--keep-duplicates")
    assert result.stdout.splitlines()[0] == (
        f"30 graphs written to {back}; 30 directories: 25 imported, 5 duplicate, 0 failed"
    )
    splits = load_dataset(root, split="train+test")
    assert {
        row["id"]: exact(Sample.from_row(row)) for row in load_dataset(back, split="train")
    } == {row["id"]: exact(Sample.from_row(row)) for row in splits}


def test_datasets_reads_an_export(root: Path, tmp_path: Path) -> None:
    output = call("export", tmp_path / "graphnet", "--dataset", root).stdout
    assert output == f"{root} written to {tmp_path / 'graphnet'}\n"
    assert len(load_dataset(tmp_path / "graphnet", "cv", split="train")) == 20
    result = call("export", tmp_path / "graphnet", exit_code=1)
    assert result.stderr.endswith("exists. Choose another directory, or delete it.\n")
    assert call("export", tmp_path / "other", "--format", "zip", exit_code=2).stdout == ""


def test_import_names_each_directory_that_it_left_out(tmp_path: Path) -> None:
    tree = tmp_path / "samples"
    write_directory(chain("a/good", 2), tree / "a" / "good")
    write_directory(chain("a/bad", 2), tree / "c" / "bad")
    (tree / "c" / "bad" / "model.py").write_text("import os\nos.abort()\n")
    out = tmp_path / "mine"
    result = call("import", tree, "--out", out, exit_code=PARTLY)
    (error,) = [line for line in result.stderr.splitlines() if line.startswith(str(tree))]
    assert error.startswith(f"{tree}/c/bad: `{tree}/c/bad/model.py`, line 1: ")
    assert result.stdout.splitlines() == [
        f"1 graph written to {out}; 2 directories: 1 imported, 0 duplicate, 1 failed",
        "  1 failed with SourceError",
        f"Report: {out}/import-report.jsonl",
    ]
    assert [each.status for each in read_report(out / "import-report.jsonl")] == [
        "imported", "failed",
    ]  # fmt: skip


def test_import_writes_nothing_where_nothing_can_be_read(tmp_path: Path) -> None:
    out = tmp_path / "mine.parquet"
    message = (
        f"Error: `{tmp_path}` does not contain any GraphNet sample (`graph_net.json`). Pass a "
        "directory of samples.\n"
    )
    assert call("import", tmp_path, "--out", out, exit_code=1).stderr == message
    (tmp_path / "graph_net.json").write_text("{")
    output = call("import", tmp_path, "--out", out, exit_code=1).stdout
    assert output.startswith("Nothing written; 1 directory: 0 imported, 0 duplicate, 1 failed\n")
    assert not out.exists()
    out.write_text("mine")
    message = f"Error: `{out}` exists. Choose another file, or delete it.\n"
    assert call("import", tmp_path, "--out", out, exit_code=1).stderr == message


@pytest.mark.parametrize("command", ["export", "import"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    assert f"Example: graphnet {command} " in call(command, "--help").stdout
