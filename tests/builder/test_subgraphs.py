"""The tables of subgraphs beside a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.subgraphs import BEGIN, END, build, draw_coverage, drop_parts, write_coverage
from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import read_table, write_table
from tests.tables import rows

pytestmark = pytest.mark.torch


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
    assert {path: path.read_bytes() for path in dataset.rglob("*.parquet")} == written
    assert drop_parts(dataset, {parent}) == 1
    assert [path for path in written if path.read_bytes() != written[path]] == [
        next(dataset.glob("typical/*.parquet"))
    ]
    assert read_table(next(dataset.glob("typical/*.parquet"))).num_rows == 0


def test_a_table_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(GraphNetError, match="There is no table `cv`"):
        build(tmp_path, tmp_path / "build", ["cv"], jobs=1)
