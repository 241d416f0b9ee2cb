"""Removal of job directories whose files may disappear during the removal."""

from __future__ import annotations

import shutil
from pathlib import Path

_NUM_ATTEMPTS = 5


def remove_tree(path: Path) -> None:
    """Remove a directory tree as far as possible, without raising errors.

    In Python 3.13.0, `shutil.rmtree` raises a TypeError ("lstat: path should be string …") if a
    file disappears meanwhile, despite `ignore_errors`. The removal is then tried again.

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
