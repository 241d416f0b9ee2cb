"""Finding the sample folders of GraphNet trees, and telling whether one has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...errors import DatasetNotFoundError

RECORD_FILE = "graph_net.json"
_COMPANIONS = frozenset({"weight_meta.py", "input_meta.py", "graph_hash.txt"})
"""Beside a `model.py` without a record they tell a broken sample from any other Python file."""


def find_folders(roots: Iterable[str | os.PathLike[str]]) -> tuple[list[Path], dict[Path, str]]:
    """Return every folder below `roots` that is a sample, and why others cannot be listed.

    A sample's folder holds `graph_net.json`, or a `model.py` beside other files of a sample.
    Folders inside a sample's folder (`subgraph_0`, …) are samples of their own. Links to
    directories are not followed, and a folder that two roots share comes once.

    Raises:
        DatasetNotFoundError: a root is missing, or there is no sample below any of them.
    """
    found: dict[Path, None] = {}
    unlisted: dict[Path, str] = {}
    roots = [Path(root).absolute() for root in roots]
    for root in roots:
        if not root.is_dir():
            raise DatasetNotFoundError(f"There is no directory `{root}`.")

        def note(error: OSError) -> None:
            unlisted[Path(error.filename)] = f"The directory cannot be listed: {error.strerror}."

        for folder, folders, files in os.walk(root, onerror=note):
            folders.sort()
            names = set(files)
            if RECORD_FILE in names or ("model.py" in names and names & _COMPANIONS):
                found.setdefault(Path(folder))
    if not found and not unlisted:
        listed = ", ".join(f"`{root}`" for root in roots)
        raise DatasetNotFoundError(f"{listed} holds no GraphNet sample (`{RECORD_FILE}`).")
    first_names: dict[str, Path] = {}
    for path in sorted(found):
        first_names.setdefault(os.path.realpath(path), path)
    return sorted(first_names.values()), unlisted


def fingerprint(folder: Path) -> str:
    """Return a hash of the names, sizes and times of a folder's files; "" if it cannot be listed.

    >>> fingerprint(Path("/no/such/folder"))
    ''
    """
    try:
        text = "\n".join(sorted(_describe(folder)))
    except OSError:
        return ""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _describe(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file():
                found = entry.stat()
                yield f"{entry.name}\0{found.st_size}\0{found.st_mtime_ns}"
