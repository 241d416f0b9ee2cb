"""Modules that some jobs of a fork server import, and that it imports itself once one has.

What takes a second to import costs each forked job that second, and a server of jobs that never
need it as much for nothing. Which jobs are to come nobody knows, so the first one tells.
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
    """Says to a server, by memory that it shares with its jobs, what they have imported.

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
        """Note what a job has imported; called in the job."""
        for place, name in enumerate(self._names):
            if name in imported:
                self._is_used[place] = 1

    def watching(
        self, job: Callable[[dict[str, Any], Reporter, Path], None]
    ) -> Callable[[dict[str, Any], Reporter, Path], None]:
        """Return a job that notes, once it ends, what it has imported."""
        if not self._names:
            return job

        def watched(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
            try:
                job(payload, reporter, directory)
            finally:
                self.note([*sys.modules])

        return watched

    def follow(self) -> None:
        """Import what a job has imported; called in the server, before the next one is forked."""
        wanted = [name for place, name in enumerate(self._names) if self._is_used[place]]
        missing = [name for name in wanted if name not in sys.modules]
        if missing:
            with not_collecting():
                for name in missing:
                    importlib.import_module(name)
            gc.freeze()  # as all that was there before the first job
