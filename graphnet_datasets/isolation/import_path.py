"""The directories that worker processes import from, which never include the working directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .launch import IMPORT_PATH_VARIABLE

PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


def import_path() -> list[str]:
    """Return the entries of `sys.path` that worker processes have as well.

    Relative entries and the working directory are left out: a user may have unpacked files of
    strangers there. The directory that contains this package is always included.

    >>> "" in import_path()
    False
    """
    entries = [*_without_working_directory(sys.path), PACKAGE_ROOT]
    return list(dict.fromkeys(entries))


def import_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that determine where a child process imports from.

    `PYTHONPATH` keeps the absolute directories that the user has put there. Python's
    `PYTHONSAFEPATH` covers processes that a worker starts in turn.
    """
    entries = environment.get("PYTHONPATH", "").split(os.pathsep)
    return {
        "PYTHONPATH": os.pathsep.join(_without_working_directory(entries)),
        "PYTHONSAFEPATH": "1",
        IMPORT_PATH_VARIABLE: os.pathsep.join(import_path()),
    }


def _without_working_directory(entries: list[str]) -> list[str]:
    here = Path.cwd().resolve()
    return [
        entry for entry in entries if Path(entry).is_absolute() and Path(entry).resolve() != here
    ]
