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
"""Maximum length of a part; file systems allow 255 bytes, and temporary names have suffixes."""

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_NUM_HASH_DIGITS = 16
_PLACES = re.compile(
    r"(?<![^\s'\"(<])[^\s'\"(<]*/(?:site|dist)-packages/|"
    + re.escape(f"{Path(__file__).parents[1]}/")
)
"""The directories of packages and of this package."""
_FOLDERS = re.compile(r"(?<![\w./:~-])/(?!dev/|proc/|sys/)(?:[^\s/\"'`:,]+/)+")
"""The folders of an absolute path; addresses of web pages do not match."""


def without_places(text: str) -> str:
    """Return a string without the directories of installed packages.

    >>> without_places("in /opt/python/site-packages/tvm/ir.py")
    'in tvm/ir.py'
    """
    return _PLACES.sub("", text)


def without_folders(text: str) -> str:
    """Return a string without the directories of packages, and without other absolute folders.

    Paths of devices and processes are kept.

    >>> without_folders("`/tmp/graphnet-1/model.py` has 7 lines; see https://pytorch.org/docs")
    '`model.py` has 7 lines; see https://pytorch.org/docs'
    """
    return _FOLDERS.sub("", without_places(text))


def check_name(name: str, where: str) -> str:
    """Return a name as a relative path with `/`, after checking that it does not leave its root.

    `where` is the origin of the name in error messages.

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
                f"`{where}` contains the name {name[:200]!r}, which is not a path below it. The "
                "name may be an attack, so nothing was read or written there. Remove it, or do not "
                "use this data."
            )
    return name


def place_inside(root: Path, name: str, where: str) -> Path:
    """Return `root / name` after checking that it is inside `root`, following links.

    Raises:
        UnsafePathError: the name leads outside, directly or through a link on the disk.

    >>> place_inside(Path("/data"), "cv/train-0000.parquet", "the listing").as_posix()
    '/data/cv/train-0000.parquet'
    """
    place = root / PurePosixPath(check_name(name, where))
    real_root = os.path.realpath(root)
    real_place = os.path.realpath(place)
    if os.path.commonpath([real_root, real_place]) != real_root or real_place == real_root:
        raise UnsafePathError(
            f"`{where}` contains the name {name[:200]!r}, but a link in `{root}` redirects it to "
            f"`{real_place}`. Remove the link, or choose another directory."
        )
    return place


def check_links(root: Path, name: str) -> None:
    """Check that every existing part of `root / name` is a directory or a regular file.

    Parts of `root` itself may be links, because the caller chose it.

    Raises:
        UnsafePathError: a part is a symbolic link, a pipe, a socket or a device.
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
    """Check that no links lead from a path below `root` to a place outside of `root`.

    Parts of `root` itself may be links, because the caller chose it. The blobs beside a snapshot in
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
        f"`{path}` is a link to `{real_path}`, outside of `{root}`. Links in downloaded folders "
        "may lead to your own files. Replace the link by a copy, or remove it."
    )


def check_is_regular(path: Path) -> None:
    """Check that a path is a regular file, a directory, or a link to one.

    Raises:
        UnsafePathError: the path is a pipe, a socket or a device.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # reading it raises the error
        return
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise _link_error(path, mode)


@contextlib.contextmanager
def open_folder(root: Path, name: str = ".", *, is_made: bool = False) -> Iterator[int]:
    """Open the directory `root / name` without following links below `root`.

    Yield its descriptor. With `is_made`, create missing directories.

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
    """Open the regular file `root / name` for reading without following links below `root`.

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
    """Convert a sample's id to a path that is valid on any file system.

    Ids with short parts do not change. A longer part is truncated and extended by a hash of the
    whole id, so that paths stay unique. A part in `taken_parts`, which are names of files, gets the
    suffix `_`.

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
