"""Imports of a fork server that are delayed until one of its jobs needs them.

If a module takes a second to import, importing it in every job costs a second per job, and
importing it in the server costs a second even if no job uses it. So the server imports the module
after the first job that did.
"""

from __future__ import annotations

import gc
import importlib
import mmap
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..collector import not_collecting
from .reporting import Reporter


class LateImports:
    """Reports a job's imports to its server through shared memory.

    >>> late = LateImports(["colorsys"])
    >>> late.note(["colorsys"])
    >>> late.follow()
    >>> "colorsys" in sys.modules
    True
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(name for name in names if name not in sys.modules)
        self._is_used = mmap.mmap(-1, max(len(self._names), 1))

    def note(self, imported: Sequence[str]) -> None:
        """Record the modules that a job has imported. Called in the job."""
        for place, name in enumerate(self._names):
            if name in imported:
                self._is_used[place] = 1

    def watching(
        self, job: Callable[[dict[str, Any], Reporter, Path], None]
    ) -> Callable[[dict[str, Any], Reporter, Path], None]:
        """Wrap a job so that it records its imports when it ends."""
        if not self._names:
            return job

        def watched(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
            try:
                job(payload, reporter, directory)
            finally:
                self.note([*sys.modules])

        return watched

    def follow_all(self) -> None:
        """Import all modules, for a server that is itself forked."""
        self.note(self._names)
        self.follow()

    def follow(self) -> None:
        """Import the modules that a job has imported. Called in the server before the next fork."""
        names = [name for place, name in enumerate(self._names) if self._is_used[place]]
        missing = [name for name in names if name not in sys.modules]
        if missing:
            with not_collecting():
                for name in missing:
                    importlib.import_module(name)
            gc.freeze()  # as `serve` does for earlier imports
