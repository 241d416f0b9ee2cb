"""Job directories are removed, whatever the job left in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from graphnet_datasets.isolation.cleaning import remove_tree


def test_a_tree_that_is_too_deep_for_recursion_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "job"
    job.mkdir()
    monkeypatch.chdir(job)
    for _ in range(sys.getrecursionlimit() + 100):
        os.mkdir("inner")  # noqa: PTH102 - the path from the root is too long
        os.chdir("inner")
    Path("file").touch()
    os.chdir(tmp_path)
    remove_tree(job)
    assert not job.exists()


def test_locked_directories_are_removed(tmp_path: Path) -> None:
    inner = tmp_path / "job" / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    for path in (inner, inner.parent, inner.parent.parent):
        path.chmod(0)
    remove_tree(tmp_path / "job")
    assert not (tmp_path / "job").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    (tmp_path / "mine").chmod(0o500)
    for target in (tmp_path / "mine", tmp_path / "mine" / "file"):
        (tmp_path / "job").mkdir()
        (tmp_path / "job" / "link").symlink_to(target)
        remove_tree(tmp_path / "job")
        assert not (tmp_path / "job").exists()
    assert (tmp_path / "mine" / "file").exists()
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o500
