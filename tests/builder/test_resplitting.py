"""New splits of parts, after their graphs have new splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import resplitting
from builder.resplitting import resplit
from builder.subgraphs import build, stale_parents
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.storage.table import read_table, write_table
from tests.tables import rows

pytestmark = pytest.mark.torch


def write_graphs(dataset: Path, splits: dict[int, str]) -> None:
    """Write the graph of each number into its split, in place of all earlier graphs."""
    for path in dataset.glob("cv/*.parquet"):
        path.unlink()
    for split in set(splits.values()):
        numbers = [number for number, chosen in splits.items() if chosen == split]
        graphs = [{**row, "split": split} for row in rows("cv", numbers)]
        write_table(graphs, dataset / "cv" / f"{split}-0000.parquet")


def read_parts(dataset: Path) -> list[tuple[str, dict[str, object]]]:
    """Return the rows of the parts with the split of their file."""
    return [
        (path.name.partition("-")[0], row)
        for path in sorted(dataset.glob("sole_op/*.parquet"))
        for row in read_table(path).to_pylist()
    ]


def test_parts_follow_their_graphs(tmp_path: Path) -> None:
    dataset, journal = tmp_path / "graphnet", tmp_path / "parts.jsonl"
    write_graphs(dataset, {1: "train", 2: "train", 3: "train"})
    build(dataset, tmp_path / "build", ["sole_op"], jobs=1)
    before = {row["id"]: row for _, row in read_parts(dataset)}
    assert {split for split, _ in read_parts(dataset)} == {"train"}

    write_graphs(dataset, {1: "validation", 2: "test", 3: "test"})
    assert stale_parents(dataset) == {row["parent_id"] for row in before.values()}
    resplit(dataset, journal)
    parts = read_parts(dataset)
    assert {row["id"] for _, row in parts} == {*before}
    assert stale_parents(dataset) == set()
    first: dict[object, set[str]] = {}
    for split, row in parts:
        assert row["split"] == split
        assert set(row["splits"]) <= {"validation", "test"}
        first.setdefault(row["structure_hash"], set()).add(split)
        changed = {"split", "splits"}
        assert {name for name in row if row[name] != before[row["id"]][name]} <= changed
    assert all(len(splits) == 1 for splits in first.values())

    again = [path.read_bytes() for path in sorted(dataset.glob("sole_op/*"))]
    resplit(dataset, journal)
    assert [path.read_bytes() for path in sorted(dataset.glob("sole_op/*"))] == again


def test_parts_of_removed_graphs_are_removed(tmp_path: Path) -> None:
    dataset = tmp_path / "graphnet"
    write_graphs(dataset, {1: "train", 2: "train"})
    build(dataset, tmp_path / "build", ["sole_op"], jobs=1)
    parents = {row["parent_id"] for _, row in read_parts(dataset)}
    write_graphs(dataset, {2: "train"})
    resplit(dataset, tmp_path / "parts.jsonl")
    left = {row["parent_id"] for _, row in read_parts(dataset)}
    (second,) = rows("cv", [2])
    assert left == parents & {second["id"]}


def test_finished_graphs_are_not_cut_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, journal = tmp_path / "graphnet", tmp_path / "parts.jsonl"
    write_graphs(dataset, {1: "train", 2: "train", 3: "train"})
    build(dataset, tmp_path / "build", ["sole_op"], jobs=1)
    resplit(dataset, journal)
    num_graphs = len({row["parent_id"] for _, row in read_parts(dataset)})
    assert len(read_journal(journal)) == num_graphs > 0
    monkeypatch.setattr(resplitting, "_parts_of", None)
    resplit(dataset, journal)
