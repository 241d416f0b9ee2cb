"""Discovery of sample folders in GraphNet trees, and detection of changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...errors import DatasetNotFoundError

RECORD_FILE = "graph_net.json"
_COMPANIONS = frozenset({"weight_meta.py", "input_meta.py", "graph_hash.txt"})
"""Files beside a `model.py` that mark a sample without its record, unlike other Python files."""


def find_folders(roots: Iterable[str | os.PathLike[str]]) -> tuple[list[Path], dict[Path, str]]:
    """Return all sample folders below `roots`, and the reasons why folders cannot be listed.

    A sample folder contains `graph_net.json`, or a `model.py` beside other files of a sample.
    Folders nested in a sample folder (`subgraph_0`, …) are separate samples. Links to directories
    are not followed, and a folder below two roots is returned once.

    Raises:
        DatasetNotFoundError: a root does not exist, or there is no sample below any root.
    """
    folders_found: dict[Path, None] = {}
    unlisted: dict[Path, str] = {}
    roots = [Path(root).absolute() for root in roots]
    for root in roots:
        if not root.is_dir():
            raise DatasetNotFoundError(f"The directory `{root}` does not exist. Check the path.")

        def note(error: OSError) -> None:
            unlisted[Path(error.filename)] = f"The directory cannot be listed: {error.strerror}."

        for folder, folders, files in os.walk(root, onerror=note):
            folders.sort()
            names = set(files)
            if RECORD_FILE in names or ("model.py" in names and names & _COMPANIONS):
                folders_found.setdefault(Path(folder))
    if not folders_found and not unlisted:
        listed = ", ".join(f"`{root}`" for root in roots)
        raise DatasetNotFoundError(
            f"{listed} does not contain any GraphNet sample (`{RECORD_FILE}`). Pass a directory of "
            "samples."
        )
    first_names: dict[str, Path] = {}
    for path in sorted(folders_found):
        first_names.setdefault(os.path.realpath(path), path)
    return sorted(first_names.values()), unlisted


def fingerprint(folder: Path) -> str:
    """Return a hash of the names, sizes and times of a folder's files, or "" if unlistable.

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
                status = entry.stat()
                yield f"{entry.name}\0{status.st_size}\0{status.st_mtime_ns}"
