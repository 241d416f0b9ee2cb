"""Atomic writing of files and directories.

New content is written to a temporary neighbour whose name begins with a dot and is unique to the
writer, and is renamed when it is complete. Readers see the old content until then.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from .paths import check_links, check_name, open_folder

_SUFFIX = ".tmp"


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], *, is_durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends.

    If the block raises, the temporary file is removed. With `is_durable`, the file and its name
    have reached the disk when the block ends. The directory must exist.

    Raises:
        OSError: the file cannot be written; the error names `path`, not the temporary path.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(f"{folder}/a.txt") as place:
    ...         _ = place.write_text("all of it")
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    path = Path(path)
    place = path.with_name(_temporary_name(path.name))
    try:
        yield place
        if is_durable:
            _sync(place)
        place.replace(path)
    except OSError as error:
        for name in ("filename", "filename2"):
            if getattr(error, name) in (str(place), place):
                setattr(error, name, str(path))
        raise
    finally:
        place.unlink(missing_ok=True)
    if is_durable:
        _sync(path.parent)  # the name too


def write_bytes(
    path: str | os.PathLike[str], data: bytes | memoryview, *, is_durable: bool = False
) -> Path:
    """Write a file atomically and return its path (see `replaced`).

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(f"{folder}/a.bin", b"all").read_bytes()
    b'all'
    """
    with replaced(path, is_durable=is_durable) as place:
        place.write_bytes(data)
    return Path(path)


def write_inside(root: Path, name: str, content: bytes) -> Path:
    """Write `root / name` atomically, without following or replacing links below `root`.

    Raises:
        UnsafePathError: a part of `name` is a symbolic link, or the file is not a regular one.
        OSError: the file cannot be written.
    """
    relative = PurePosixPath(check_name(name, str(root)))
    check_links(root, name)
    temporary = _temporary_name(relative.name)
    with open_folder(root, str(relative.parent), is_made=True) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, relative.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return root / relative


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a UTF-8 text file atomically and return its path (see `replaced`).

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/a.txt", "all").read_text()
    'all'
    """
    return write_bytes(path, text.encode())


def append_json(path: str | os.PathLike[str], value: Any) -> None:
    """Append a JSON-compatible value as a line, which is on disk when the function returns.

    An incomplete last line, left by a killed process, is removed. `decoding.read_journal` reads the
    file.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_json(f"{folder}/a.jsonl", {"trial": 1})
    ...     Path(f"{folder}/a.jsonl").read_text()
    '{"trial": 1}\\n'
    """
    with Path(path).open("a+b") as file:
        end = file.tell()
        file.seek(max(end - 1, 0))
        if file.read() not in (b"", b"\n"):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(value).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def is_abandoned(place: Path) -> bool:
    """Return whether a temporary file of `replaced` was left by a process that has ended.

    >>> is_abandoned(Path(f".a.txt.{os.getpid()}.0a1b2c3d.tmp"))
    False
    >>> is_abandoned(Path(f".a.txt.{2**22 + 1}.0a1b2c3d.tmp")), is_abandoned(Path("notes.tmp"))
    (True, False)
    """
    parts = place.name.split(".")
    is_ours = place.suffix == _SUFFIX and len(parts) > 3 and parts[-3].isdigit()
    return is_ours and not Path("/proc", parts[-3]).exists()


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which is created if missing, during the block.

    Other threads and processes that call this function wait. File systems without locks are
    ignored.

    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)):
    ...     _ = write_text(f"{folder}/a.txt", "all")
    """
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # forks have copies of the descriptor
        os.close(descriptor)


@contextlib.contextmanager
def temporary_directory(prefix: str = "graphnet-") -> Iterator[Path]:
    """Yield a temporary directory that is removed after the block, even if this process is killed.

    A shell process waits until a pipe closes, which happens when this process ends for any reason,
    and then removes the directory.

    >>> with temporary_directory() as place:
    ...     _ = (place / "a.txt").write_text("a")
    >>> place.exists()
    False
    """
    path = Path(tempfile.mkdtemp(prefix=prefix))
    command = ["/bin/sh", "-c", 'read -r line; rm -rf -- "$1"', "sh", str(path)]
    try:
        guard = subprocess.Popen(  # noqa: S603 (a fixed command, the path is its argument)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # not interrupted by Ctrl-C in the terminal
            env={"PATH": os.defpath},
        )
    except BaseException:
        path.rmdir()
        raise
    try:
        yield path
    finally:
        guard.communicate()
        shutil.rmtree(path, ignore_errors=True)  # if no shell is available


@contextlib.contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path for a new directory, which moves to `path` when the block ends.

    If the block raises, the temporary directory is removed. Parent directories are created; `path`
    must be missing or an empty directory.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_directory(f"{folder}/a") as place:
    ...         place.mkdir()
    ...         _ = (place / "b.txt").write_text("b")
    ...     sorted(path.name for path in Path(folder).rglob("*"))
    ['a', 'b.txt']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as around:
        place = Path(around) / path.name
        yield place
        place.mkdir(exist_ok=True)
        place.replace(path)


@contextlib.contextmanager
def replaced_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new directory that replaces the one at `path` when the block ends.

    If the block raises, the old directory remains unchanged.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for text in ("first", "second"):
    ...         with replaced_directory(f"{folder}/a") as place:
    ...             _ = (place / text).write_text(text)
    ...     sorted(path.name for path in Path(folder).rglob("*"))
    ['a', 'second']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as around:
        older = Path(around, "older")
        try:
            with new_directory(path) as place:
                place.mkdir()
                yield place
                if path.exists():
                    path.rename(older)
        except BaseException:
            if older.exists() and not path.exists():
                older.rename(path)
            raise


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file_sha256(write_bytes(f"{folder}/a.bin", b""))[:8]
    'e3b0c442'
    """
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _temporary_name(name: str) -> str:
    return f".{name}.{os.getpid()}.{secrets.token_hex(4)}{_SUFFIX}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
