"""GraphNet trees to datasets: everything accounted for, whatever happens on the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphnet_datasets import Sample, export_dataset, load_dataset, write_directory
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import DatasetExistsError, DatasetNotFoundError, RunError
from graphnet_datasets.isolation import Limits
from graphnet_datasets.storage.export import export_directories
from graphnet_datasets.storage.importing import import_directories, importer, read_report
from tests.exact import exact
from tests.tables import chain

GRAPHNET = Path(sys.executable).with_name("graphnet")


def plant(tree: Path, *names: str, first: int = 1) -> Path:
    """Write a chain of another length for each name."""
    for number, name in enumerate(names, first):
        write_directory(chain(name, number, "cv", source="test"), tree / name)
    return tree


def rows_of(dataset: Path) -> dict[str, dict[str, Any]]:
    splits: Any = load_dataset(dataset, split=None, streaming=True)
    return {row["id"]: row for split in splits.values() for row in split}


def test_a_tree_becomes_a_dataset_by_task_and_family(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/one", "a/two", "b/three")
    write_directory(chain("c/speech", 9, "audio"), tree / "c" / "speech")
    seen: list[tuple[int, int]] = []
    report = import_directories(
        tree, tmp_path / "mine", jobs=2, on_progress=lambda *counts: seen.append(counts)
    )
    assert (report.num_rows, report.failures, report.duplicates) == (4, [], [])
    assert seen[0] == (0, 4)
    assert seen[-1] == (4, 4)
    rows = rows_of(tmp_path / "mine")
    assert list(rows) == ["c/speech", "a/one", "a/two", "b/three"]
    assert exact(Sample.from_row(rows["b/three"])) == exact(
        chain("b/three", 3, "cv", source="test")
    )
    for row in rows.values():
        assert row["op_tags"] == []
        assert row["op_histogram"] == [{"target": "torch.relu", "count": row["num_ops"]}]
        assert row["flops"] is None
        shard = tmp_path / "mine" / row["task"] / f"{split_of(row['family'])}-0000.parquet"
        assert row["id"] in load_dataset(shard, split="train")["id"][:]
    assert {path.name for path in tmp_path.iterdir()} == {"samples", "mine"}
    assert read_report(report.report_path) == list(report.outcomes)


@pytest.mark.slow
@pytest.mark.torch
def test_costs_are_counted_when_asked_for(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/one")
    import_directories(tree, tmp_path / "mine.parquet", jobs=1, has_costs=True)
    (row,) = rows_of(tmp_path / "mine.parquet").values()
    assert row["flops"] == 6


def test_rows_of_one_file_share_row_groups(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/first", "b/second", "c/third")
    import_directories(tree, tmp_path / "mine.parquet", jobs=1)
    metadata = pq.ParquetFile(tmp_path / "mine.parquet").metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (3, 1)


def test_every_directory_is_in_the_report_with_its_reason(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/good", "b/torn", "c/evil", "d/nameless", "e/locked")
    (tree / "b/torn/weight_meta.py").unlink()
    (tree / "c/evil/model.py").write_text("import os\nos.abort()\n")
    (tree / "d/nameless/graph_net.json").unlink()
    (tree / "e/locked/model.py").unlink()
    (tree / "e/locked/model.py").mkdir()
    report = import_directories(tree, tmp_path / "mine.parquet", jobs=1)
    lines = report.report_path.read_text().splitlines()
    assert report.report_path == tmp_path / "mine.import-report.jsonl"
    found = {json.loads(line)["path"]: json.loads(line) for line in lines}
    assert found.pop(f"{tree}/a/good") == {
        "path": f"{tree}/a/good", "status": "imported", "id": "a/good", "is_in_table": True,
    }  # fmt: skip
    assert {path.rpartition("/")[2]: each["error_type"] for path, each in found.items()} == {
        "torn": "SourceError", "evil": "SourceError", "nameless": "SourceError",
        "locked": "SourceError",
    }  # fmt: skip
    assert found[f"{tree}/c/evil"]["reason"].startswith(f"`{tree}/c/evil/model.py`, line 1: ")
    assert "`model.py` is not a regular file" in found[f"{tree}/e/locked"]["reason"].replace(
        f"{tree}/e/locked/", ""
    )
    assert report.summary().splitlines() == [
        f"1 graph written to {tmp_path}/mine.parquet; 5 directories: 1 imported, 0 duplicate, "
        "4 failed",
        "  4 failed with SourceError",
        f"Report: {tmp_path}/mine.import-report.jsonl",
    ]


@pytest.mark.slow
def test_the_same_graph_twice_is_recorded_and_kept_only_if_asked_for(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/first")
    plant(tree, "b/second")
    report = import_directories(tree, tmp_path / "mine", jobs=1)
    (duplicate,) = report.duplicates
    assert (duplicate.id, duplicate.duplicate_of, duplicate.is_in_table) == (
        "b/second", "a/first", False,
    )  # fmt: skip
    assert list(rows_of(tmp_path / "mine")) == ["a/first"]
    report = import_directories(tree, tmp_path / "both", jobs=1, keeps_duplicates=True)
    assert [each.duplicate_of for each in report.duplicates] == ["a/first"]
    assert list(rows_of(tmp_path / "both")) == ["a/first", "b/second"]


def test_another_graph_of_the_same_name_is_stored_under_another(tmp_path: Path) -> None:
    for number in (1, 2):
        plant(tmp_path / f"tree{number}", "a/net", first=number)
    trees = [tmp_path / "tree1", tmp_path / "tree2"]
    report = import_directories(trees, tmp_path / "mine", jobs=1)
    rows = rows_of(tmp_path / "mine")
    other = f"a/net@{rows[max(rows)]['signature_hash'][:8]}"
    assert {name: row["num_ops"] for name, row in rows.items()} == {"a/net": 1, other: 2}
    assert [(each.id, each.renamed_from) for each in report.outcomes] == [
        ("a/net", ""), (other, "a/net"),
    ]  # fmt: skip
    again = import_directories(trees, tmp_path / "again", jobs=2)
    assert rows_of(tmp_path / "again") == rows
    assert "1 stored under another id" in again.summary()


def test_subgraphs_stand_alone_where_one_of_them_is_broken(tmp_path: Path) -> None:
    parts = [chain(f"a/net/subgraph_{number}", number + 1) for number in range(3)]
    tree = write_directory(parts, tmp_path / "samples" / "a" / "net")
    (tree / "subgraph_1" / "model.py").unlink()
    report = import_directories(tmp_path / "samples", tmp_path / "mine", jobs=1)
    assert list(rows_of(tmp_path / "mine")) == ["a/net/subgraph_0", "a/net/subgraph_2"]
    assert [each.path for each in report.failures] == [str(tree / "subgraph_1")]


def test_a_folder_that_ends_its_worker_is_a_failure_of_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = plant(tmp_path / "samples", "a/one", "a/two")
    limits = Limits(memory_bytes=1, is_memory_enforced=True)
    monkeypatch.setattr(importer, "LIMITS", limits)
    report = import_directories(tree, tmp_path / "mine", jobs=1)
    assert report.out is None
    assert not (tmp_path / "mine").exists()
    assert {each.error_type for each in report.failures} <= {"out_of_memory", "error", "crash"}
    assert len(report.failures) == 2
    assert read_report(tmp_path / "mine.import-report.jsonl") == list(report.outcomes)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list any directory")
def test_a_directory_that_cannot_be_listed_is_in_the_report(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/one", "b/two")
    (tree / "b").chmod(0)
    try:
        report = import_directories(tree, tmp_path / "mine", jobs=1)
    finally:
        (tree / "b").chmod(0o700)
    assert [each.path for each in report.failures] == [str(tree / "b")]


def test_existing_data_is_never_overwritten(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/one")
    (tmp_path / "empty").mkdir()
    import_directories(tree, tmp_path / "empty", jobs=1)
    with pytest.raises(DatasetExistsError, match=r"exists\. Choose another path, or delete it\.$"):
        import_directories(tree, tmp_path / "empty", jobs=1)
    with pytest.raises(DatasetNotFoundError, match=r"does not contain any GraphNet sample"):
        import_directories(tmp_path / "empty", tmp_path / "new", jobs=1)
    message = f"The directory `{tmp_path}/nowhere` does not exist. Check the path."
    with pytest.raises(DatasetNotFoundError, match=f"^{re.escape(message)}$"):
        import_directories(tmp_path / "nowhere", tmp_path / "new", jobs=1)
    assert {path.name for path in tmp_path.iterdir()} == {"samples", "empty"}
    with pytest.raises(RunError, match=r"^There is no executor `slurm`\."):
        import_directories(tree, tmp_path / "new", executor="slurm")


def test_a_killed_import_goes_on_where_it_was(tmp_path: Path) -> None:
    names = [f"net/{number:02}" for number in range(40)]
    tree = plant(tmp_path / "samples", *names)
    expected = import_directories(tree, tmp_path / "whole", jobs=2)
    out = tmp_path / "mine"
    command = [str(GRAPHNET), "import", str(tree), "--out", str(out), "--jobs", "1"]
    parts = tmp_path / ".mine.import" / "parts"
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(parts.glob("*.arrow")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    # A folder that changes meanwhile is read again, one that goes is forgotten, one may come.
    plant(tree, names[0], first=100)
    shutil.rmtree(tree / names[1])
    plant(tree, "net/new", first=200)
    (parts / "torn.arrow").write_bytes(b"ARROW1")
    report = import_directories(tree, out, jobs=1)
    assert 0 < report.num_resumed < 40
    rows, whole = rows_of(out), rows_of(tmp_path / "whole")
    assert {rows[names[0]]["num_ops"], rows["net/new"]["num_ops"]} == {100, 200}
    changed = {names[0], names[1], "net/new"}
    assert {name: row for name, row in rows.items() if name not in changed} == {
        name: row for name, row in whole.items() if name not in changed
    }
    assert len(report.outcomes) == len(expected.outcomes) == 40
    assert not parts.exists()


def test_an_import_that_was_stopped_while_tidying_is_finished(tmp_path: Path) -> None:
    tree = plant(tmp_path / "samples", "a/one")
    first = import_directories(tree, tmp_path / "mine", jobs=1)
    (tmp_path / ".mine.import").mkdir()
    (tmp_path / ".mine.import" / "finished").touch()
    again = import_directories(tree, tmp_path / "mine", jobs=1)
    assert (again.out, again.outcomes, again.num_rows) == (first.out, first.outcomes, 1)
    assert not (tmp_path / ".mine.import").exists()


def check_identity(tree: Path, directory: Path) -> None:
    report = import_directories(tree, directory / "first", keeps_duplicates=True)
    assert report.failures == []
    exported = export_directories(directory / "tree", directory / "first")
    assert (exported.num_written, exported.failures) == (report.num_rows, ())
    again = import_directories(directory / "tree", directory / "second", keeps_duplicates=True)
    assert again.num_rows == report.num_rows
    tables = [
        {
            path.relative_to(root): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.suffix in (".parquet", ".md")
        }
        for root in (directory / "first", directory / "second")
    ]
    assert tables[0] == tables[1]
    assert export_dataset(directory / "copy", directory / "second").is_dir()


@pytest.mark.slow
def test_import_export_import_is_the_identity_on_real_directories(
    upstream_samples: Path, tmp_path: Path
) -> None:
    found = sorted(path.parent for path in upstream_samples.rglob("graph_net.json"))
    for folder in found[::40]:
        shutil.copytree(folder, tmp_path / "some" / folder.relative_to(upstream_samples))
    check_identity(tmp_path / "some", tmp_path)


@pytest.mark.slow
def test_import_export_import_is_the_identity_on_all_real_directories(
    upstream_samples: Path, tmp_path: Path
) -> None:
    check_identity(upstream_samples, tmp_path)
