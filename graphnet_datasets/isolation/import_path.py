"""The import path of worker processes, which never includes the working directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .launch import IMPORT_PATH_VARIABLE

PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


def import_path() -> list[str]:
    """Return the entries of `sys.path` that worker processes also use.

    Relative entries and the working directory are excluded, because a user may have unpacked
    untrusted files there. The directory that contains this package is always included.

    >>> "" in import_path()
    False
    """
    entries = [*_without_working_directory(sys.path), PACKAGE_ROOT]
    return list(dict.fromkeys(entries))


def import_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that set the import path of a child process.

    `PYTHONPATH` keeps the absolute directories set by the user. `PYTHONSAFEPATH` also applies to
    the processes that a worker starts.
    """
    entries = environment.get("PYTHONPATH", "").split(os.pathsep)
    return {
        "PYTHONPATH": os.pathsep.join(_without_working_directory(entries)),
        "PYTHONSAFEPATH": "1",
        IMPORT_PATH_VARIABLE: os.pathsep.join(import_path()),
    }


def _without_working_directory(entries: list[str]) -> list[str]:
    working_directory = Path.cwd().resolve()
    return [
        entry
        for entry in entries
        if Path(entry).is_absolute() and Path(entry).resolve() != working_directory
    ]
