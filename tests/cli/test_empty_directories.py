"""Commands remove the empty directories that frameworks create when they are imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphnet_datasets.cli.empty_directories import removed_if_empty

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


@pytest.fixture(autouse=True)
def _no_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "")  # so that the value of the test is forgotten after it
    monkeypatch.delenv(VARIABLE)


def create(home: Path) -> tuple[Path, Path]:
    """Create what importing torch and paddle creates."""
    inductor, paddle = home / "torchinductor_me", home / ".cache" / "paddle" / "dataset"
    os.environ.setdefault(VARIABLE, str(inductor))
    for path in (inductor, paddle):
        path.mkdir(parents=True, exist_ok=True)
    return inductor, paddle


def test_new_empty_directories_are_removed(tmp_path: Path) -> None:
    with removed_if_empty():
        create(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_directories_in_use_stay(tmp_path: Path) -> None:
    with removed_if_empty():
        inductor, paddle = create(tmp_path)
        for path in (inductor, paddle):
            (path / "file").touch()
    assert (inductor / "file").exists() and (paddle / "file").exists()


def test_directories_of_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "torchinductor_me"))
    inductor, paddle = create(tmp_path)
    with removed_if_empty():
        create(tmp_path)
    assert inductor.exists() and paddle.exists()
