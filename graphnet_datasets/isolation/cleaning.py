"""Removing the directories of jobs, whose files may go away while they are removed."""

from __future__ import annotations

import shutil
from pathlib import Path

_NUM_ATTEMPTS = 5


def remove_tree(path: Path) -> None:
    """Remove a directory with all that lies in it, as far as that can be; nothing is raised.

    Python 3.13.0 ends `shutil.rmtree` with a TypeError ("lstat: path should be string …") where
    what it looks at has gone meanwhile, in spite of `ignore_errors`; the rest is tried again.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp())
    >>> (path / "inner").mkdir()
    >>> remove_tree(path)
    >>> path.exists()
    False
    """
    for _ in range(_NUM_ATTEMPTS):
        try:
            shutil.rmtree(path, ignore_errors=True)
        except TypeError:
            continue
        return
