"""A dataset as a directory that plain `datasets` reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from graphnet_datasets import Sample, export_dataset, load_dataset
from graphnet_datasets.errors import DatasetExistsError, DatasetNotFoundError
from tests.tables import write_dataset

PLAIN = """
import datasets
dataset = datasets.load_dataset("graphnet", "cv", split="train")
print(len(dataset), dataset[0]["id"])
print(sorted(datasets.get_dataset_config_names("graphnet")))
"""


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "source")


def test_plain_datasets_loads_the_directory_by_its_name_beside_it(
    root: Path, tmp_path: Path
) -> None:
    export_dataset(tmp_path / "work" / "graphnet", root)
    result = subprocess.run(
        [sys.executable, "-c", PLAIN],
        cwd=tmp_path / "work",
        env={**os.environ, "HF_HOME": str(tmp_path / "home")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout.splitlines() == ["20 cv/chain-1", "['all', 'cv', 'nlp']"]


def test_the_copy_is_the_dataset_and_nothing_else(root: Path, tmp_path: Path) -> None:
    expected = files(root)
    (root / "cv" / "notes.txt").write_text("mine")
    copy = export_dataset(tmp_path / "copy", root)
    assert files(copy) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "source"]


def test_a_dataset_without_a_readme_gets_one(root: Path, tmp_path: Path) -> None:
    readme = (root / "README.md").read_text()
    (root / "README.md").unlink()
    assert (export_dataset(tmp_path / "copy", root) / "README.md").read_text() == readme


def test_an_empty_directory_is_filled_and_a_full_one_is_left_alone(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    export_dataset(tmp_path / "empty", root)
    before = files(tmp_path / "empty")
    message = f"`{tmp_path / 'empty'}` exists. Choose another directory, or delete it."
    with pytest.raises(DatasetExistsError, match=f"^{re.escape(message)}$"):
        export_dataset(tmp_path / "empty", root)
    assert files(tmp_path / "empty") == before


def test_missing_datasets_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"^The directory .* does not exist"):
        export_dataset(tmp_path / "copy", tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("hub")
def test_a_repository_is_exported_at_the_branch_of_this_format(root: Path, tmp_path: Path) -> None:
    api = HfApi()
    api.create_repo("org/graphs", repo_type="dataset")
    api.create_branch("org/graphs", branch="v1", repo_type="dataset")
    api.upload_folder(repo_id="org/graphs", folder_path=root, repo_type="dataset", revision="v1")
    copy = export_dataset(tmp_path / "copy", "org/graphs")
    assert files(copy) == files(root)
    assert not any(path.is_symlink() for path in copy.rglob("*"))
    assert Sample.from_row(load_dataset(copy, "nlp", split="train")[0]).task == "nlp"
    with pytest.raises(DatasetNotFoundError, match=r"^There is no dataset `org/nothing` on"):
        export_dataset(tmp_path / "other", "org/nothing")
