"""Symbolic links in somebody else's repository: no submission follows them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.errors import PushError, UnsafePathError
from graphnet_datasets.hub import submit_samples
from tests.clones import git, make_clone
from tests.tables import chain

UNCHECKED: dict[str, Any] = {"skip_validation": "a test", "split": "train"}
CONTENT = "a file of the user"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "secret").write_text(CONTENT)
    return make_clone(tmp_path / "clone")


def link_readme(clone: Path) -> None:
    (clone / "README.md").symlink_to("../secret")


def link_readme_to_nothing(clone: Path) -> None:
    (clone / "README.md").symlink_to("../outside/nothing.md")


def link_config(clone: Path) -> None:
    (clone / "cv").symlink_to("../outside")


def link_config_to_nothing(clone: Path) -> None:
    (clone / "cv").symlink_to("../outside/nothing")


def link_config_within(clone: Path) -> None:
    (clone / "real").mkdir()
    (clone / "cv").symlink_to("real")


def link_shard(clone: Path) -> None:
    submit_samples(chain("cv/other", 2, "cv"), clone, branch="before", **UNCHECKED)
    (shard,) = (clone / "cv").iterdir()
    shard.rename(clone.parent / "outside" / "other.parquet")
    shard.symlink_to("../../outside/other.parquet")
    git(clone, "commit", "--all", "--quiet", "--message", "Link")


def link_a_deep_folder(clone: Path) -> None:
    submit_samples(chain("cv/other", 2, "cv"), clone, branch="before", **UNCHECKED)
    shutil.move(clone / "cv", clone.parent / "outside" / "cv")
    (clone / "data").mkdir()
    (clone / "data" / "cv").symlink_to("../../outside/cv")
    text = "configs:\n- config_name: cv\n  data_files: data/cv/*.parquet\n"
    (clone / "README.md").write_text(f"---\n{text}---\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "Link")


def make_pipe(clone: Path) -> None:
    os.mkfifo(clone / "README.md")


@pytest.mark.parametrize(
    "attack",
    [
        link_readme, link_readme_to_nothing, link_config, link_config_to_nothing,
        link_config_within, link_shard, link_a_deep_folder, make_pipe,
    ],
)  # fmt: skip
def test_links_are_refused_and_lead_nowhere(clone: Path, attack: Callable[[Path], None]) -> None:
    attack(clone)
    head = git(clone, "rev-parse", "HEAD")
    outside = sorted((clone.parent / "outside").rglob("*"))
    with pytest.raises(UnsafePathError, match=r"is (a symbolic link|neither a file nor)"):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == head
    assert sorted((clone.parent / "outside").rglob("*")) == outside
    assert CONTENT not in git(clone, "log", "--all", "--patch")


def test_a_linked_folder_is_refused(clone: Path) -> None:
    (clone / "data").symlink_to("../outside")
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        submit_samples(chain("cv/one", 1, "cv"), clone, folder="data/inner", **UNCHECKED)
    assert list((clone.parent / "outside").iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "work tree"])
def test_a_git_directory_elsewhere_is_refused(clone: Path, kind: str) -> None:
    other = make_clone(clone.parent / "other")
    head = git(other, "rev-parse", "HEAD")
    if kind == "work tree":
        git(clone, "config", "core.worktree", str(clone.parent / "outside"))
    else:
        shutil.rmtree(clone / ".git")
        if kind == "link":
            (clone / ".git").symlink_to("../other/.git")
        else:
            (clone / ".git").write_text("gitdir: ../other/.git\n")
    with pytest.raises((UnsafePathError, PushError)):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(other, "rev-parse", "HEAD") == head
    assert git(other, "branch", "--format=%(refname:short)") == "main"
    assert list((clone.parent / "outside").iterdir()) == []


def test_a_work_tree_of_a_clone_is_a_clone(clone: Path) -> None:
    beside = clone.parent / "beside"
    git(clone, "worktree", "add", "--quiet", "--detach", str(beside))
    done = submit_samples(chain("cv/one", 1, "cv"), beside, **UNCHECKED)
    assert git(beside, "rev-parse", "HEAD") == done.commit


def test_a_link_elsewhere_in_the_repository_does_not_matter(clone: Path) -> None:
    (clone / "NOTES").symlink_to("../secret")
    done = submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == done.commit
