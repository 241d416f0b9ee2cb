"""Validation of path names that come from data.

A name from a listing, a README, a row or an archive must be a path below the output directory.
`check_name` validates the text alone, `place_inside` also follows links on the disk, and
`folder_name` creates a name that every file system supports.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from .errors import UnsafePathError

MAX_PART_BYTES = 200
"""Of the 255 bytes that file systems allow; the rest is for suffixes of temporary names."""

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_NUM_HASH_DIGITS = 16


def check_name(name: str, where: str) -> str:
    """Return a relative path with `/` between its parts, after checking that it stays below.

    `where` says who gave the name, for the message.

    Raises:
        UnsafePathError: it is absolute, empty, or has a part `..` or `.`, a backslash or a control
            character, plain or percent-encoded.

    >>> check_name("cv/train-0000.parquet", "the listing")
    'cv/train-0000.parquet'
    """
    decoded = name.replace("%2e", ".").replace("%2E", ".")
    decoded = re.sub("%2f", "/", re.sub("%5c", "\\\\", decoded, flags=re.I), flags=re.I)
    for text in (name, decoded):
        parts = text.split("/")
        if (
            not text
            or any(part in ("", ".", "..") for part in parts)
            or "\\" in text
            or _DRIVE.match(text)
            or _CONTROL.search(text)
        ):
            raise UnsafePathError(
                f"`{where}` gives the name {name[:200]!r}, which is not a path below it. Nothing "
                "is read from or written to such a place; do not trust who wrote the name."
            )
    return name


def place_inside(root: Path, name: str, where: str) -> Path:
    """Return `root / name` after checking that it lies inside `root`, links followed.

    Raises:
        UnsafePathError: the name leads outside, as it stands or through a link on the disk.

    >>> place_inside(Path("/data"), "cv/train-0000.parquet", "the listing").as_posix()
    '/data/cv/train-0000.parquet'
    """
    place = root / PurePosixPath(check_name(name, where))
    real_root = os.path.realpath(root)
    real_place = os.path.realpath(place)
    if os.path.commonpath([real_root, real_place]) != real_root or real_place == real_root:
        raise UnsafePathError(
            f"`{where}` gives the name {name[:200]!r}, which a link leads from `{root}` to "
            f"`{real_place}`. Remove the link, or choose another directory."
        )
    return place


def check_links(root: Path, name: str) -> None:
    """Raise unless every existing part of `root / name` is a directory or a regular file.

    Links of `root` itself are not looked at: the caller chose it.

    Raises:
        UnsafePathError: a part is a symbolic link, broken or not, a pipe, a socket or a device.
    """
    place = root
    for part in PurePosixPath(name).parts:
        place /= part
        try:
            mode = place.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise _link_error(place, mode)


def check_target(root: Path, path: Path) -> None:
    """Raise if links lead from a path below `root` to a place outside of `root`.

    Links of `root` itself are not looked at: the caller chose it. The blobs beside a snapshot in
    the cache of the Hub count as inside.

    Raises:
        UnsafePathError: the path leads outside.
    """
    real_root, real_path = Path(os.path.realpath(root)), Path(os.path.realpath(path))
    if real_path.is_relative_to(real_root):
        return
    for folder in (real_root, *real_root.parents):
        is_snapshot = folder.parent.name == "snapshots"
        if is_snapshot and real_path.is_relative_to(folder.parent.parent / "blobs"):
            return
    raise UnsafePathError(
        f"`{path}` is a link to `{real_path}`, outside of `{root}`. Links in somebody else's "
        "folder may lead to your own files: replace the link by a copy, or remove it."
    )


@contextlib.contextmanager
def open_folder(root: Path, name: str = ".", *, is_made: bool = False) -> Iterator[int]:
    """Open the directory `root / name` and yield its descriptor; no link below `root` is followed.

    With `is_made` missing directories are made.

    Raises:
        UnsafePathError: a part of `name` is a symbolic link.
        OSError: a directory is missing or cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, folder)
        place = root
        for part in PurePosixPath(name).parts:
            place /= part
            if is_made:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            try:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                folder = os.open(part, flags, dir_fd=folder)
            except NotADirectoryError:
                check_links(root, name)
                raise
            stack.callback(os.close, folder)
        yield folder


@contextlib.contextmanager
def open_file(root: Path, name: str) -> Iterator[BinaryIO]:
    """Open the regular file `root / name` for reading; no link below `root` is followed.

    Raises:
        UnsafePathError: a part of `name` is a symbolic link, or the file is not a regular one.
        OSError: the file is missing or cannot be opened.
    """
    relative = PurePosixPath(check_name(name, str(root)))
    check_links(root, name)
    with open_folder(root, str(relative.parent)) as folder:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(relative.name, flags, dir_fd=folder), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise _link_error(root / relative, mode)
            yield file


def _link_error(place: Path, mode: int) -> UnsafePathError:
    if stat.S_ISLNK(mode):
        problem = "a symbolic link. Links in somebody else's folder may lead to your own files"
    else:
        problem = "a pipe, a socket or a device, and reading it may never end"
    return UnsafePathError(
        f"`{place}` is {problem}. Replace it by a regular file or directory, or remove it."
    )


def folder_name(name: str, taken_parts: frozenset[str] = frozenset()) -> str:
    """Return a path of one or more parts that any file system takes, from a sample's id.

    An id whose parts are short is its own name. A longer part keeps its beginning and gets a hash
    of the whole, so that two of them stay two; a part that is one of `taken_parts`, which are names
    of files, gets `_`.

    >>> folder_name("timm/resnet18"), folder_name("a/model.py", frozenset({"model.py"}))
    ('timm/resnet18', 'a/model.py_')
    >>> len(folder_name("x" * 300))
    200
    """
    return "/".join(_part(part, taken_parts) for part in name.split("/"))


def _part(part: str, taken_parts: frozenset[str]) -> str:
    encoded = part.encode(errors="surrogateescape")
    if len(encoded) > MAX_PART_BYTES:
        start = encoded[: MAX_PART_BYTES - _NUM_HASH_DIGITS - 1].decode(errors="ignore")
        return f"{start}-{hashlib.sha256(encoded).hexdigest()[:_NUM_HASH_DIGITS]}"
    return f"{part}_" if part in taken_parts else part
