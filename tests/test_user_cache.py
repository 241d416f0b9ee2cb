"""Where a user's own cache lies, and that code in it is the user's alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets.user_cache import cache_directory, private_directory


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_lies_where_the_user_says_and_is_not_made_by_asking(base: Path) -> None:
    assert cache_directory() == base / "graphnet_datasets"
    assert cache_directory("peaks") == base / "graphnet_datasets" / "peaks"
    assert not base.exists()


def test_without_a_word_it_lies_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "graphnet_datasets"


def test_a_folder_of_code_is_the_user_s_alone(base: Path) -> None:
    path = private_directory("code")
    assert path == base / "graphnet_datasets" / "code"
    assert path.stat().st_mode & 0o777 == 0o700
    assert private_directory("code") == path


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_folder_that_others_may_write_is_refused(mode: int) -> None:
    path = private_directory("code")
    path.chmod(mode)
    with pytest.raises(PermissionError, match=r"other users can write.*chmod 700"):
        private_directory("code")


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(base: Path) -> None:
    base.write_text("a file")
    with pytest.raises(NotADirectoryError):
        private_directory("code")
