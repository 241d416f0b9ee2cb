"""Exports lose nothing: each graph has a directory of its own, or is named with the reason."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.cli.counting import PARTLY
from graphnet_datasets.directory import SampleTree
from graphnet_datasets.directory.reading import read_folder
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.export import ExportedDirectories, export_directories
from graphnet_datasets.storage.table import write_table
from tests.exact import exact
from tests.tables import chain

FAMILIES = {
    "one id twice": ("a/b", "a/b", "a/b"),
    "an id that is what the second of one id would be called": ("a/b-2", "a/b", "a/b", "a/b-3"),
    "a parent and its subgraphs": ("a", "a/subgraph_0", "a/subgraph_1", "a/part_0/x"),
    "ids of 300 characters": ("x" * 300, "x" * 299 + "y", "a/" + "x" * 300 + "/b", "x" * 200),
    "through the files of another": ("a", "a/model.py", "a/model.py/b", "a/graph_net.json/c"),
    "names that differ in case": ("a/B", "a/b", "A/b"),
}


def read_tree(root: Path) -> list[str]:
    """Return every sample that lies anywhere below a directory, as text."""
    return sorted(exact(read_folder(path.parent)) for path in root.rglob("model.py"))


def export(samples: list[Sample], folder: Path) -> ExportedDirectories:
    return export_directories(folder / "tree", write_table(samples, folder / "all.parquet"))


@pytest.mark.parametrize("ids", FAMILIES.values(), ids=list(FAMILIES))
def test_every_graph_is_written_in_any_order(ids: tuple[str, ...], tmp_path: Path) -> None:
    samples = [chain(name, size) for size, name in enumerate(ids, 1)]
    expected = sorted(exact(each) for each in samples)
    for number, order in enumerate(itertools.permutations(samples)):
        done = export(list(order), tmp_path / str(number))
        assert (done.num_written, done.failures) == (len(ids), ())
        assert read_tree(tmp_path / str(number) / "tree") == expected


def test_many_ids_that_collide_in_a_random_order(tmp_path: Path) -> None:
    draw = random.Random(0)  # noqa: S311 - an order, not a secret
    parts = ["a", "a-2", "a-3", "model.py", "subgraph_0", "y" * 250, "weight_meta.py", "model.py_"]
    samples = [
        chain("/".join(draw.choices(parts, k=draw.randint(1, 3)))[:512], size)
        for size in range(1, 60)
    ]
    done = export(samples, tmp_path)
    assert (done.num_written, done.failures) == (len(samples), ())
    assert read_tree(tmp_path / "tree") == sorted(exact(each) for each in samples)


def test_every_failure_is_named(tmp_path: Path) -> None:
    good = sample_to_row(chain("a/b", 2))
    bad = [{**good, "id": name} for name in ("../up", "/root", "a//b", "a/../b", "../up", "a b")]
    table = write_table([good, *bad, good], tmp_path / "all.parquet")
    done = export_directories(tmp_path / "tree", table)
    assert done.num_written == 2
    assert [name for name, _ in done.failures] == [row["id"] for row in bad]
    assert all("is not a path of letters" in reason for _, reason in done.failures)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["all.parquet", "tree"]


def test_a_tree_keeps_other_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").write_text("mine")
    (tmp_path / "b").write_text("mine")
    tree = SampleTree(tmp_path)
    assert tree.write(chain("a", 1)) == tmp_path / "a"
    assert tree.write(chain("b", 1)) == tmp_path / "b-2"
    assert SampleTree(tmp_path).write(chain("a", 2)) == tmp_path / "a-2"
    assert ((tmp_path / "a" / "notes.txt").read_text(), (tmp_path / "b").read_text()) == (
        "mine",
    ) * 2


def test_the_command_counts_written_samples(tmp_path: Path) -> None:
    good = sample_to_row(chain("a", 2))
    table = write_table([good, good, {**good, "id": "../x"}], tmp_path / "all.parquet")
    arguments = ["export", str(tmp_path / "tree"), "--dataset", str(table), "--format", "graphnet"]
    result: Result = CliRunner().invoke(app, arguments)
    assert result.exit_code == PARTLY
    assert result.stdout == f"2 sample directories written to {tmp_path / 'tree'}\n"
    assert result.stderr.splitlines()[-1] == "1 graph was left out"
    assert len(read_tree(tmp_path / "tree")) == 2
