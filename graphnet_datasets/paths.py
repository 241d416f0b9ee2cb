"""Names that come from data, and where they may lead: this module decides it for every writer.

A name out of a listing, a README, a row or an archive is a path below the directory that is
written, whoever wrote the name. `check_name` looks at the text alone, `place_inside` at the links
on the disk as well, and `folder_name` makes a name that every file system takes.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path, PurePosixPath

from .errors import UnsafePathError

MAX_PART_BYTES = 200
"""Of 255 that file systems allow for one name; the rest is for the endings of temporary names."""

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
