"""Removal of job directories, whatever the job left in them."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

_NUM_ATTEMPTS = 5


def remove_tree(path: Path) -> None:
    """Remove a directory tree as far as possible, without raising errors.

    `shutil.rmtree` fails if directories are nested too deeply (a RecursionError) or locked by their
    permissions, and in Python 3.13.0 if a file disappears meanwhile (a TypeError, "lstat: path
    should be string …"). The tree is then flattened and unlocked, and the removal tried again.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp())
    >>> (path / "inner").mkdir()
    >>> remove_tree(path)
    >>> path.exists()
    False
    """
    for _ in range(_NUM_ATTEMPTS):
        with contextlib.suppress(TypeError, RecursionError):
            shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        with contextlib.suppress(OSError):
            _flatten(path)


def _flatten(path: Path) -> None:
    """Move all directories below `path` into it, after making them accessible to their owner.

    Links are not followed.
    """
    names = map(f".{secrets.token_hex(4)}-{{}}".format, itertools.count())
    with _unlocked(str(path)) as root:
        pending = [""]
        while pending:
            with _unlocked(pending.pop() or ".", root) as folder:
                with os.scandir(folder) as entries:
                    inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                for old in inner:
                    new = next(names)
                    with contextlib.suppress(OSError):
                        with _unlocked(old, folder):  # a locked directory cannot be moved
                            pass
                        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=root)
                        pending.append(new)


@contextlib.contextmanager
def _unlocked(name: str, parent: int | None = None) -> Iterator[int]:
    """Open a directory whose owner then has all rights, and yield its descriptor."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        reopened = Path(f"/proc/self/fd/{place}")
        reopened.chmod(0o700)  # `fchmod` fails for descriptors of paths
        folder = os.open(reopened, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(place)
    try:
        yield folder
    finally:
        os.close(folder)
