"""Captures of catalog entries, each in its own process, stored in a build directory.

Each row is stored as a table under a key of all inputs that determine its content, so that an
interrupted build continues and a change only invalidates the affected captures. A long build can
use keys of the entry and the libraries only, see `Keys`.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from graphnet_datasets.isolation import Limits, Work

from .catalog import LIBRARY_VARIABLE, Entry
from .libraries import LIBRARIES, library_of
from .program import ROOTS, files_behind

PACKAGE = ROOTS["graphnet_datasets"]
BUILDER = ROOTS["builder"]

EMBEDDED = PACKAGE / "starter" / "graphnet"
"""The dataset that comes with the package."""

PHASES = ("build", "capture", "write")
LIMITS = Limits(
    phase_timeouts_s={"build": 300.0, "capture": 900.0, "write": 120.0},
    memory_bytes=4 * 2**30,
    is_memory_enforced=False,  # modules reserve memory that they never touch
)

FAILURE = ".failure"
"""Suffix of the file with the reason of a failure."""


@dataclasses.dataclass(frozen=True)
class Capture:
    """The outcome of capturing an entry: its table, or the reason of the failure."""

    entry: Entry
    path: Path | None
    reason: str = ""


def known(entry: Entry, path: Path, is_failure_kept: bool) -> Capture | None:
    """Return the stored capture of an entry, or None."""
    if path.is_file():
        return Capture(entry, path)
    failure = path.with_suffix(FAILURE)
    if is_failure_kept and failure.is_file():
        return Capture(entry, None, failure.read_text())
    return None


def ended(entries: Iterable[Entry], build: Path, keys: Keys) -> list[Capture]:
    """Return the stored captures of entries, including failures."""
    captures = (known(entry, keys.path(entry, build), True) for entry in entries)
    return [capture for capture in captures if capture is not None]


def worker_of(library: str) -> str:
    """Return the worker module that captures models of a library."""
    return LIBRARIES[library].worker


def work_of(library: str, limits: Limits, *, is_confined: bool = True) -> Work:
    """Return the configuration of workers that capture models of a library."""
    # Models are built from configurations, so nothing is downloaded.
    offline = os.environ.get("HF_HUB_OFFLINE", "1")
    environment = {LIBRARY_VARIABLE: library, "HF_HUB_OFFLINE": offline}
    return Work(worker_of(library), PHASES, limits, environment, is_confined=is_confined)


class Keys:
    """Keys of cached rows: hashes over the entry, the program and the libraries.

    With `is_strict=False`, the program and the modules of `builder.architectures` are excluded, so
    that an edit does not invalidate a build of hours. Use a new build directory after an edit that
    changes captures.
    """

    def __init__(self, *, is_strict: bool = True) -> None:
        self._is_strict = is_strict
        self._shared = version("torch").partition("+")[0]
        self._files = {path.stem: path for path in (BUILDER / "architectures").glob("*.py")}
        self._sources = {
            name: stem for stem, path in self._files.items() for name in _builders(path)
        }

    def of(self, entry: Entry) -> str:
        """Return the key of an entry: letters and digits.

        Raises:
            MissingExtraError: the entry's library is not installed.
        """
        library = library_of(entry).version
        if self._is_strict and entry.library == "torch":
            library = _digest(self._files[stem] for stem in self._reached(entry.builder))
        text = "\0".join((entry.line, self._program(entry.library), self._shared, library))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _program(self, library: str) -> str:
        """Return a hash of all modules that the worker of a library imports, or "" if keys exclude
        them.

        Of `builder.architectures`, only the modules that the entry imports are included.
        """
        if not self._is_strict:
            return ""
        framework = LIBRARIES[library].framework
        return _digest(files_behind(worker_of(library), framework, ("builder.architectures.",)))

    def path(self, entry: Entry, build: Path) -> Path:
        """Return the file of an entry's row in a build directory."""
        return build / f"{self.of(entry)}.parquet"

    def _reached(self, builder: str) -> list[str]:
        """Return the modules of architectures that a builder's module imports, itself included."""
        pending, reached = [self._sources.get(builder, "__init__")], set()
        while pending:
            stem = pending.pop()
            if stem not in reached:
                reached.add(stem)
                pending += _siblings(self._files[stem]) & self._files.keys()
        return sorted(reached)


def _builders(path: Path) -> Iterator[str]:
    """Yield the keys of `ARCHITECTURES` in a module without importing the module."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key in node.value.keys:
                if isinstance(key, ast.Constant):
                    yield str(key.value)


def _siblings(path: Path) -> set[str]:
    return {
        str(node.module)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
    }


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def default_jobs() -> int:
    """Return the default number of workers: one per two cores, each busy with one thread."""
    return max(1, (os.cpu_count() or 1) // 2)
