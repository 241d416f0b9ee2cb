"""The user's cache directory for results that are slow to compute and can be recreated."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def cache_directory(name: str = "") -> Path:
    """Return a folder of the cache, `$XDG_CACHE_HOME/graphnet_datasets`, which may not exist yet.

    >>> cache_directory("peaks").parts[-2:]
    ('graphnet_datasets', 'peaks')
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "graphnet_datasets" / name


def file_identity(path: str | os.PathLike[str]) -> tuple[str, int, int]:
    """Return the resolved path, size in bytes and modification time of a file; zeros if it is
    missing.

    >>> file_identity("/no/such/file")
    ('/no/such/file', 0, 0)
    """
    resolved = Path(path).resolve()
    try:
        status = resolved.stat()
    except OSError:
        return str(resolved), 0, 0
    return str(resolved), status.st_size, status.st_mtime_ns


def private_directory(name: str) -> Path:
    """Return a folder of the cache for code that will be run, creating it if it is missing.

    Raises:
        PermissionError: another user owns the directory or can write to it.
        OSError: it cannot be created.
    """
    path = cache_directory(name)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"Code would be loaded from `{path}`, to which other users can write. Remove their "
            "permissions (`chmod 700`), or set XDG_CACHE_HOME to another directory."
        )
    return path
