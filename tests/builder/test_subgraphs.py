"""The tables of subgraphs beside a dataset."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from builder.subgraphs import (
    BEGIN,
    END,
    MAX_SIZES,
    build,
    draw_coverage,
    drop_parts,
    stale_parents,
    write_coverage,
)
from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import read_table, write_table
from tests.tables import rows

pytestmark = pytest.mark.torch


@pytest.mark.slow
def test_tables_stand_beside_the_graphs_and_leave_them_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = tmp_path / "graphnet"
    write_table(rows("cv", range(1, 4)), dataset / "cv" / "train-0000.parquet")
    write_table(rows("nlp", range(4, 5)), dataset / "nlp" / "test-0000.parquet")
    write_readme(dataset)
    before = load_dataset(dataset, "all", split="all")["id"][:]
    build(dataset, tmp_path / "build", ["typical"], jobs=1)
    said = capsys.readouterr().out
    assert "typical, by repeats: 1 row for 2 places, which cover 60.0% of 10 operators" in said
    assert load_dataset(dataset, "all", split="all")["id"][:] == before
    assert load_dataset(dataset, split="train", filters=[("kind", "==", "subgraph")]).num_rows == 0
    typical = load_dataset(dataset, "typical", split="all")
    assert [Sample.from_row(row).num_ops for row in typical] == typical["num_ops"][:]
    picture = draw_coverage(dataset, tmp_path).read_text()
    assert "<svg" in picture and draw_coverage(dataset, tmp_path).read_text() == picture
    text = tmp_path / "text.md"
    text.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_coverage(dataset, text)
    lines = text.read_text().splitlines()
    assert (lines[:2], lines[-2:]) == (["before", BEGIN], [END, "after"]) and "old" not in lines
    assert lines[4].startswith("| `typical` | `repeats` | 1 | 2 | 60.0% | 0 | 0 | 0.")
    text.write_text("no markers")
    with pytest.raises(GraphNetError, match="has no lines"):
        write_coverage(dataset, text)
    written = {path: path.read_bytes() for path in dataset.rglob("*.parquet")}
    build(dataset, tmp_path / "build", ["typical"], jobs=1)
    assert {path: path.read_bytes() for path in dataset.rglob("*.parquet")} == written
    (parent,) = typical["parent_id"][:]
    assert drop_parts(dataset, {"another graph"}) == 0
    assert drop_parts(dataset, ()) == 0
    assert stale_parents(dataset) == set()
    assert {path: path.read_bytes() for path in dataset.rglob("*.parquet")} == written
    assert drop_parts(dataset, {parent}) == 1
    assert [path for path in written if path.read_bytes() != written[path]] == [
        next(dataset.glob("typical/*.parquet"))
    ]
    assert read_table(next(dataset.glob("typical/*.parquet"))).num_rows == 0


def test_the_most_frequent_sizes_of_a_computation_are_kept(tmp_path: Path) -> None:
    graphs = [
        sample_to_row(
            Sample(
                f"example/relu-{size}-{copy}",
                "torch",
                "cv" if copy == 0 else "nlp",
                (Input("input", Value("float32", (size,))),),
                (Op("torch.relu", (Ref(0),), results=(Value("float32", (size,)),)),),
                Ref(1),
            ),
            {"family": f"relu-{copy}"},
        )
        for size in range(1, MAX_SIZES["sole_op"] + 3)
        for copy in range(2 if size > 2 else 1)  # the first two sizes are in one family
    ]
    for task in ("cv", "nlp"):
        of_task = [row for row in graphs if row["task"] == task]
        write_table(of_task, tmp_path / task / "train-0000.parquet")
    build(tmp_path, tmp_path / "build", ["sole_op"], jobs=1)
    parts = read_table(tmp_path / "sole_op" / "train-0000.parquet").to_pylist()
    shapes = sorted(part["inputs"][0]["shape"] for part in parts)
    assert shapes == [[size] for size in range(3, MAX_SIZES["sole_op"] + 3)]
    assert all(part["tasks"] == ["cv", "nlp"] for part in parts)
    assert all((part["num_occurrences"], part["num_families"]) == (2, 2) for part in parts)


def test_graphs_above_the_limit_are_not_cut(tmp_path: Path) -> None:
    write_table(rows("cv", range(1, 6)), tmp_path / "cv" / "train-0000.parquet")
    build(tmp_path, tmp_path / "build", ["sole_op"], jobs=1, max_ops=2)
    (part,) = read_table(tmp_path / "sole_op" / "train-0000.parquet").to_pylist()
    assert part["num_occurrences"] == 3


@pytest.mark.parametrize("change", ["gone", "another split", "another operator", "another shape"])
def test_graphs_that_do_not_give_their_parts_any_more_are_found(
    change: str, tmp_path: Path
) -> None:
    path = tmp_path / "cv" / "train-0000.parquet"
    write_table(rows("cv", range(1, 3)), path)
    build(tmp_path, tmp_path / "build", ["sole_op"], jobs=1)
    parts = [row for each in tmp_path.glob("sole_op/*") for row in read_table(each).to_pylist()]
    parents = {row["parent_id"] for row in parts}
    assert parents and stale_parents(tmp_path) == set()
    graphs = read_table(path).to_pylist()
    changed = next(row for row in graphs if row["id"] in parents)
    others = [row for row in graphs if row is not changed]
    path.unlink()
    if change == "another split":
        write_table([changed], tmp_path / "cv" / "test-0000.parquet")
    elif change == "another operator":
        sample = Sample.from_row(changed)
        ops = tuple(dataclasses.replace(op, target="torch.abs") for op in sample.ops)
        others.append(sample_to_row(dataclasses.replace(sample, ops=ops)))
    elif change == "another shape":
        sample = Sample.from_row(changed)
        inputs = tuple(
            dataclasses.replace(each, value=Value("float32", (7, *each.value.shape[1:])))
            if each.role == "input"
            else each
            for each in sample.inputs
        )
        others.append(sample_to_row(dataclasses.replace(sample, inputs=inputs)))
    write_table(others, path)
    assert stale_parents(tmp_path) == {changed["id"]}


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(GraphNetError, match="There is no table `cv`"):
        build(tmp_path, tmp_path / "build", ["cv"], jobs=1)
