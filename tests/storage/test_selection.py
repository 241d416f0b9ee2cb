from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import load_dataset, load_sample
from graphnet_datasets.errors import DatasetNotFoundError, RunError
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.selection import choose, select_rows
from graphnet_datasets.storage.table import write_table
from tests.tables import chain, write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset"))


def ids(*arguments: Any, **options: Any) -> list[str]:
    return [row["id"] for row in select_rows(*arguments, **options)]


def test_samples_rows_and_datasets_are_taken_as_they_are(dataset: Path) -> None:
    sample = chain("a/one", 1)
    assert ids(sample) == ids([sample]) == ids([sample.to_row()]) == ["a/one"]
    rows = load_dataset(dataset, "nlp", split="train")
    assert ids(rows) == [f"nlp/chain-{size}" for size in range(1, 6)]
    assert ids([rows, sample, sample])[-1] == "a/one"
    assert len(ids([rows, sample, sample])) == 6


def test_a_row_gets_the_hashes_that_it_lacks() -> None:
    (row,) = select_rows(chain("a/one", 1))
    assert row["family"]
    assert row["structure_hash"]
    assert Sample.from_row(row) == chain("a/one", 1)


def test_names_are_configs_ids_or_the_dataset(dataset: Path) -> None:
    assert len(ids("cv", dataset=dataset)) == 25
    assert ids("cv/chain-7", dataset=dataset) == ["cv/chain-7"]
    assert len(ids("all", dataset=dataset)) == len(ids(str(dataset), dataset=dataset)) == 30


def test_excluded_graphs_are_taken_by_that_name_alone(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "graphnet")
    failed = {**chain("cv/failed", 1, "cv").to_row(), "why_excluded": "runnable: NaN."}
    write_table([failed], root / "excluded" / "train-0000.parquet")
    write_readme(root)
    assert ids("excluded", dataset=root) == ["cv/failed"]
    assert "cv/failed" not in ids("all", dataset=root)


def test_a_path_is_a_file_or_a_directory(dataset: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    write_table([chain("a/one", 1), chain("a/two", 2)], path)
    assert ids(path) == ids(str(path)) == ["a/one", "a/two"]
    assert len(ids(dataset)) == 30


def test_a_graphnet_directory_is_read(tmp_path: Path) -> None:
    from graphnet_datasets import write_directory

    write_directory(chain("a/one", 1), tmp_path / "one")
    assert len(ids(tmp_path)) == len(ids(str(tmp_path / "one"))) == 1


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"min_ops": 24}, ["cv/chain-24", "cv/chain-25"]),
        ({"max_ops": 1}, ["cv/chain-1", "nlp/chain-1"]),
        ({"task": ("nlp",), "min_ops": 4}, ["nlp/chain-4", "nlp/chain-5"]),
        ({"source": ("nlp-library",), "family": ("od",), "min_ops": 4}, ["nlp/chain-5"]),
        ({"tag": ("small",), "task": ("nlp",)}, ["nlp/chain-1", "nlp/chain-2"]),
        ({"tag": ("smallish", "chain"), "min_ops": 2, "limit": 2}, ["cv/chain-2", "nlp/chain-2"]),
        ({"tag": ("none",)}, []),
        ({"framework": ("paddle",)}, []),
        ({"kind": ("joint",)}, []),
        ({"kind": ("graph", "joint"), "limit": 1}, ["cv/chain-1"]),
        ({"max_params": 0, "limit": 1}, ["cv/chain-1"]),
        ({"limit": 4}, ["cv/chain-1", "cv/chain-2", "nlp/chain-1", "nlp/chain-2"]),
        ({"limit": 11}, None),
    ],
)
def test_filters(dataset: Path, filters: dict[str, Any], expected: list[str] | None) -> None:
    found = ids(["cv", "nlp"], Filters(**filters), dataset=dataset)
    if expected is None:  # nlp has five, so cv gives the other six
        assert [name.partition("/")[0] for name in found] == ["cv"] * 6 + ["nlp"] * 5
    else:
        assert found == expected


def test_a_name_that_nothing_has_is_refused(dataset: Path) -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        select_rows("resnet18", dataset=dataset)
    assert str(caught.value) == (
        f"`resnet18` is neither a config nor the id of a sample of `{dataset}`. The configs are "
        "all, cv, nlp, audio, multimodal, scientific, other, excluded, truncated, sole_op, "
        "fusible, typical, compiler_bugs; list ids with `graphnet list`; start a path with "
        "`./` or `/`; choose another dataset with `--dataset org/name`."
    )


def test_a_directory_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        select_rows(tmp_path)
    assert str(caught.value) == (
        f"`{tmp_path}` has neither Parquet files nor a GraphNet sample (`graph_net.json`). "
        "Choose another path."
    )


def test_rows_without_the_graph_are_refused(dataset: Path) -> None:
    with pytest.raises(RunError) as caught:
        select_rows(load_dataset(dataset, "nlp", columns=["id", "num_ops"], split="train"))
    assert str(caught.value) == (
        "A row lacks the column `ops`, which is needed to run it. Load the dataset with all "
        "columns (`columns=None`)."
    )


def test_chosen_rows_are_whole(dataset: Path) -> None:
    chosen = select_rows(["cv", "nlp"], Filters(min_ops=3, limit=5), dataset=dataset)
    assert [row["id"] for row in chosen] == [
        *(f"cv/chain-{size}" for size in (3, 4, 5)),
        *(f"nlp/chain-{size}" for size in (3, 4)),
    ]
    stored = {row["id"]: row for row in load_dataset(dataset, split="all")}
    for row in chosen:
        assert row.keys() == stored[row["id"]].keys()
        assert row["structure_hash"]  # which the table lacks
        for name, value in stored[row["id"]].items():
            assert value is None or row[name] == value


def test_families_that_the_table_lacks_are_filtered_by(tmp_path: Path) -> None:
    root = tmp_path / "graphnet"
    relu = chain("a/relu", 1)
    tanh = dataclasses.replace(
        relu, id="a/tanh", ops=(dataclasses.replace(relu.ops[0], target="torch.tanh"),)
    )
    rows = [relu.to_row(), tanh.to_row()]
    assert not any(row.get("family") for row in rows)
    write_table(rows, root / "cv" / "train-0000.parquet")
    write_readme(root)
    (of_tanh,) = select_rows(tanh)
    assert ids("cv", Filters(family=(of_tanh["family"],)), dataset=root) == ["a/tanh"]


def test_of_equal_ids_each_framework_has_its_row(tmp_path: Path) -> None:
    root = tmp_path / "graphnet"
    rows = [chain("a/one", 1).to_row(), chain("a/one", 1).to_row() | {"framework": "paddle"}]
    write_table(rows, root / "cv" / "train-0000.parquet")
    write_readme(root)
    found = select_rows("cv", dataset=root)
    assert [row["framework"] for row in found] == ["torch", "paddle"]
    (row,) = select_rows("cv", Filters(framework=("paddle",)), dataset=root)
    assert row["framework"] == "paddle"


def test_one_sample_is_loaded_by_its_id(dataset: Path, tmp_path: Path) -> None:
    assert load_sample("nlp/chain-3", dataset).num_ops == 3
    with pytest.raises(DatasetNotFoundError, match=r"is not the id .* Did you mean `nlp/chain-3`"):
        load_sample("nlp/chian-3", dataset)
    with pytest.raises(
        DatasetNotFoundError, match=r"`cv` is not the id of a sample of `[^`]*`\. `g"
    ):
        load_sample("cv", dataset)
    both = [chain("a/b", 2), dataclasses.replace(chain("a/b", 3), framework="paddle")]
    path = write_table(both, tmp_path / "both.parquet")
    with pytest.raises(RunError, match=r"`a/b` exists for paddle and torch\. Choose one with `f"):
        load_sample("a/b", path)
    assert load_sample("a/b", path, framework="paddle").num_ops == 3


def test_chosen_samples_are_streamed_as_they_are_read() -> None:
    chosen = choose("scientific", Filters(max_ops=40))
    names = chosen.names
    assert len(chosen) == len(names) > 20
    streamed = {(row["framework"], row["id"]): row for row in chosen.stream()}
    assert [streamed[name] for name in names] == chosen.read()
    assert chosen.limited(3).names == names[:3]
    torch = chosen.of(["torch"])
    assert torch.names == [name for name in names if name[0] == "torch"]
    assert [row["id"] for row in torch.read(2)] == [name for _, name in torch.names[:2]]
