"""Configs and splits of a dataset directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from graphnet_datasets import load_dataset
from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.errors import DatasetNotFoundError, SchemaError, UnsafePathError
from graphnet_datasets.storage.layout import read_layout, write_readme
from graphnet_datasets.storage.table import write_table
from tests.tables import chain, rows, write_dataset


def names(root: Path) -> dict[str, dict[str, list[str]]]:
    return {
        config: {
            split: [str(path.relative_to(root)) for path in paths]
            for split, paths in splits.items()
        }
        for config, splits in read_layout(root).configs.items()
    }


EXPECTED = {
    "cv": {"test": ["cv/test-0000.parquet"], "train": ["cv/train-0000.parquet"]},
    "nlp": {"train": ["nlp/train-0000.parquet"]},
    "all": {
        "test": ["cv/test-0000.parquet"],
        "train": ["cv/train-0000.parquet", "nlp/train-0000.parquet"],
    },
}


def test_the_readme_names_the_files_that_the_folders_hold(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "graphnet")
    assert names(root) == EXPECTED
    (root / "README.md").unlink()
    assert names(root) == EXPECTED
    assert read_layout(root).default == "all"


def test_runs_are_a_config_of_their_own(tmp_path: Path) -> None:
    root = write_dataset(tmp_path)
    write_table(rows("cv", range(2)), root / "runs" / "train-0000.parquet")
    write_readme(root)
    assert names(root)["runs"] == {"train": ["runs/train-0000.parquet"]}
    assert names(root)["all"] == EXPECTED["all"]


def test_the_readme_changes_with_the_files_alone(tmp_path: Path) -> None:
    readme = write_dataset(tmp_path) / "README.md"
    before = readme.read_text()
    write_readme(tmp_path)
    assert readme.read_text() == before
    write_table(rows("nlp", range(6, 9)), tmp_path / "nlp" / "train-0001.parquet")
    write_readme(tmp_path)
    after = readme.read_text()
    first, second = (yaml.safe_load(text.split("---")[1])["configs"] for text in (before, after))
    assert first[0] == second[0]
    assert first[1]["data_files"] == second[1]["data_files"]
    assert first[1]["description"] != second[1]["description"]


def test_the_readme_lists_features_but_no_split_sizes_and_keeps_its_text(tmp_path: Path) -> None:
    readme = write_dataset(tmp_path) / "README.md"
    write_readme(tmp_path, body="# Mine\n")
    write_readme(tmp_path)
    text = readme.read_text()
    assert text.endswith("---\n# Mine\n")
    info = yaml.safe_load(text.split("---")[1])["dataset_info"]
    assert [set(entry) for entry in info] == [{"config_name", "features"}] * 3
    assert len(text) < 6_000


@pytest.mark.parametrize(
    ("data_files", "expected"),
    [
        ("cv/train-*.parquet", {"train": ["cv/train-0000.parquet"]}),
        (
            ["cv/train-*.parquet", "nlp/*"],
            {"train": ["cv/train-0000.parquet", "nlp/train-0000.parquet"]},
        ),
        ({"dev": "cv/test-*"}, {"dev": ["cv/test-0000.parquet"]}),
        ([{"split": "dev", "path": ["cv/test-*"]}], {"dev": ["cv/test-0000.parquet"]}),
    ],
)
def test_every_form_of_data_files_is_read(
    tmp_path: Path, data_files: object, expected: object
) -> None:
    root = write_dataset(tmp_path)
    card = {"configs": [{"config_name": "mine", "data_files": data_files}]}
    (root / "README.md").write_text(f"---\n{yaml.safe_dump(card)}---\n")
    assert names(root) == {"mine": expected}
    assert read_layout(root).default == "mine"


@pytest.mark.parametrize(
    "configs",
    [
        "- cv",
        "- config_name: cv",
        "- {config_name: cv, data_files: /etc/*}",
        "- {config_name: cv, data_files: ../*}",
        "- {config_name: cv, data_files: [{path: a}]}",
        "3",
    ],
)
def test_a_readme_that_says_something_else_is_refused(tmp_path: Path, configs: str) -> None:
    root = write_dataset(tmp_path)
    (root / "README.md").write_text(f"---\nconfigs: \n{configs}\n---\n".replace("\n3", " 3"))
    message = (
        f"The `configs` in `{root / 'README.md'}` are invalid. They must be a "
        "list of `config_name` and `data_files`, each with a `split` and a `path` inside the "
        "directory."
    )
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        read_layout(root)


def test_yaml_that_cannot_be_parsed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nconfigs: [\n---\n")
    with pytest.raises(SchemaError, match=r"^The YAML at the top of `.*README\.md` cannot be"):
        read_layout(tmp_path)


def test_directories_without_tables_get_advice(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(DatasetNotFoundError, match=f"^The directory `{missing}` does not exist"):
        read_layout(missing)
    message = (
        f"`{tmp_path}` has no Parquet table. Write a dataset directory with `graphnet export`."
    )
    with pytest.raises(DatasetNotFoundError, match=f"^{re.escape(message)}$"):
        read_layout(tmp_path)
    (tmp_path / "resnet18").mkdir()
    (tmp_path / "resnet18" / "graph_net.json").write_text("{}")
    message = (
        f"`{tmp_path}` has no Parquet table. It contains GraphNet sample directories: read them "
        "with `read_directory`, or convert them to a table with `graphnet import`."
    )
    with pytest.raises(DatasetNotFoundError, match=f"^{re.escape(message)}$"):
        read_layout(tmp_path)
    with pytest.raises(DatasetNotFoundError, match="Write its tables before its README"):
        write_readme(tmp_path)


def test_tables_and_cards_that_lead_outside_are_refused(tmp_path: Path) -> None:
    outside = write_table([chain("private", 1)], tmp_path / "private.parquet")
    dataset = tmp_path / "dataset"
    (dataset / "cv").mkdir(parents=True)
    (dataset / "cv" / "train-0.parquet").symlink_to(outside)
    for read in (read_layout, load_dataset, read_runs):
        with pytest.raises(UnsafePathError, match="outside of"):
            read(dataset)
    (dataset / "cv" / "train-0.parquet").unlink()
    write_table([chain("one", 1)], dataset / "cv" / "train-0.parquet")
    (dataset / "README.md").symlink_to(outside)
    with pytest.raises(UnsafePathError, match="outside of"):
        read_layout(dataset)


def test_a_snapshot_in_the_cache_of_the_hub_is_read(tmp_path: Path) -> None:
    blob = write_table([chain("one", 1)], tmp_path / "datasets--a--b" / "blobs" / "0123")
    snapshot = tmp_path / "datasets--a--b" / "snapshots" / "main"
    (snapshot / "cv").mkdir(parents=True)
    (snapshot / "cv" / "train-0.parquet").symlink_to(blob)
    assert read_layout(snapshot).configs["cv"] == {"train": [snapshot / "cv" / "train-0.parquet"]}
