"""Files appear whole or not at all, and what is left by those who died can be told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets import atomic


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@given(old=st.none() | st.binary(max_size=40), new=st.binary(max_size=40), is_durable=st.booleans())
def test_written_content_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, old: bytes | None, new: bytes, is_durable: bool
) -> None:
    path = tmp_path_factory.mktemp("atomic") / "a.bin"
    if old is not None:
        path.write_bytes(old)
    assert atomic.write_bytes(path, new, is_durable=is_durable) == path
    assert path.read_bytes() == new
    assert names(path.parent) == ["a.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_keeps_the_existing_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    atomic.write_text(path, "before")
    with pytest.raises(error), atomic.replaced(path) as place:
        place.write_text("half")
        assert path.read_text() == "before"
        raise error
    assert path.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


def test_text_is_utf8_with_the_line_ends_that_it_has(tmp_path: Path) -> None:
    assert atomic.write_text(tmp_path / "a", "ä\n\r\n").read_bytes() == b"\xc3\xa4\n\r\n"


def test_an_error_of_the_disk_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        atomic.write_text(tmp_path / "none" / "a.txt", "")
    assert missing.value.filename == str(tmp_path / "none" / "a.txt")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as taken:
        atomic.write_text(tmp_path / "folder", "")
    assert taken.value.filename == taken.value.filename2 == str(tmp_path / "folder")
    assert names(tmp_path) == ["folder"]


def test_killed_writers_are_distinguished_from_active_ones(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from graphnet_datasets.atomic import replaced\n"
        "with replaced(sys.argv[1]) as place:\n"
        "    place.write_text('half')\n"
        "    os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.txt")], check=False)
    (left,) = tmp_path.iterdir()
    assert atomic.is_abandoned(left)
    with atomic.replaced(tmp_path / "b.txt") as place:
        assert not atomic.is_abandoned(place)
        place.touch()


def test_the_longest_name_that_data_may_give_fits(tmp_path: Path) -> None:
    from graphnet_datasets.paths import MAX_PART_BYTES

    assert atomic.write_text(tmp_path / ("x" * MAX_PART_BYTES), "").is_file()


def test_a_directory_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "above" / "a"
    with pytest.raises(ValueError), atomic.new_directory(path) as place:
        place.mkdir()
        (place / "half").touch()
        raise ValueError
    assert names(tmp_path / "above") == []
    path.mkdir()
    with atomic.new_directory(path) as place:
        place.mkdir()
        (place / "b.txt").touch()
        assert names(path) == []
    assert names(path) == ["b.txt"]
    with atomic.new_directory(tmp_path / "empty"):
        pass
    assert (tmp_path / "empty").is_dir()


def test_a_directory_that_holds_something_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").touch()
    with pytest.raises(OSError), atomic.new_directory(tmp_path / "a") as place:
        place.mkdir()
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["mine"]


def test_the_hash_of_a_file_is_that_of_its_content(tmp_path: Path) -> None:
    path = atomic.write_bytes(tmp_path / "a", os.urandom(10))
    import hashlib

    assert atomic.file_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
