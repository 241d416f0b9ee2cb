"""The staging area of a dataset under construction: a hidden directory beside it.

Imports and transforms collect parts there, so that an interruption does not lose them, and then
publish the dataset by a single rename.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..errors import DatasetExistsError

PART_SUFFIX = ".arrow"
_FINISHED = "finished"


class Staging:
    """The hidden directory of a dataset under construction.

    `work` names the operation in the directory's name and in messages. `pattern` selects the files
    that are needed to resume after an interruption.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     staging = Staging(Path(folder) / "mine", "import")
    ...     with staging.hold():
    ...         staged = staging.new_place()
    ...         staged.mkdir()
    ...         staging.publish(staged)
    ...     [path.name for path in Path(folder).iterdir()]
    ['mine']
    """

    def __init__(self, target: Path, work: str, pattern: str = f"parts/*{PART_SUFFIX}") -> None:
        self.target, self.work, self._pattern = target, work, pattern
        self.directory = target.absolute().parent / f".{target.name}.{work}"
        self.parts = self.directory / "parts"

    @property
    def is_published(self) -> bool:
        """True if the dataset was published before the cleanup finished."""
        return (self.directory / _FINISHED).exists() and self.target.exists()

    def discard(self) -> None:
        """Remove the hidden directory."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def check_free(self) -> None:
        """Raise an error if the target is in use.

        Raises:
            DatasetExistsError: the target is a file, or a directory that is not empty.
        """
        if self.target.exists():
            kind = "file" if self.target.is_file() else "path"
            is_empty = self.target.is_dir() and not any(self.target.iterdir())
            if not is_empty:
                raise DatasetExistsError(
                    f"`{self.target}` exists. Choose another {kind}, or delete it."
                )

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the dataset against other writers; delete the parts after a successful block.

        Raises:
            DatasetExistsError: another process is writing the dataset.
        """
        self.parts.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise DatasetExistsError(
                    f"Another {self.work} is writing `{self.target}`. Wait for it, or choose "
                    "another place."
                ) from error
            try:
                yield
            except BaseException:
                if not any(self.directory.glob(self._pattern)):
                    self.discard()
                raise
            self.discard()

    def new_place(self) -> Path:
        """Return an empty path for writing the dataset, removing leftovers of earlier calls."""
        staged = self.directory / f"staged{self.target.suffix}"
        shutil.rmtree(staged, ignore_errors=True)
        return staged

    def publish_with_report(
        self, name: str, outcomes: Iterable[Any], write: Callable[[Path], object] | None
    ) -> tuple[Path | None, Path]:
        """Publish the dataset that `write` writes, with a report of dataclasses as JSON lines.

        Return the paths of both. If `write` is None there is no dataset, and the report is written
        beside the target.
        """
        report = "".join(f"{json.dumps(dataclasses.asdict(outcome))}\n" for outcome in outcomes)
        if write is None:
            return None, write_text(self.target.with_name(f"{self.target.name}.{name}"), report)
        staged = self.new_place()
        write(staged)
        write_text(staged / name, report)
        self.publish(staged)
        return self.target, self.target / name

    def publish(self, staged: Path) -> None:
        """Move the written dataset to its target."""
        (self.directory / _FINISHED).touch()
        if self.target.is_dir():  # an empty directory
            self.target.rmdir()
        staged.replace(self.target)
