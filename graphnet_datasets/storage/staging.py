"""A dataset in the making: its parts in a hidden directory beside it, until it is whole.

Imports and transforms collect parts there, so that a stop of any kind loses none of them, and put
the dataset into its place by one rename.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..errors import DatasetExistsError

PART_SUFFIX = ".arrow"
_FINISHED = "finished"


class Staging:
    """The hidden directory of a dataset that is being made.

    `work` says what makes it, in the directory's name and in messages. `kept` is a pattern of the
    files in it without which there is nothing to go on from after a stop.

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

    def __init__(self, target: Path, work: str, kept: str = f"parts/*{PART_SUFFIX}") -> None:
        self.target, self.work, self._kept = target, work, kept
        self.directory = target.absolute().parent / f".{target.name}.{work}"
        self.parts = self.directory / "parts"

    @property
    def is_published(self) -> bool:
        """Whether all but the tidying was done when it was stopped."""
        return (self.directory / _FINISHED).exists() and self.target.exists()

    def discard(self) -> None:
        """Remove the hidden directory."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def check_free(self) -> None:
        """Refuse a place where something is.

        Raises:
            DatasetExistsError: there is a file, or a directory that is not empty.
        """
        if self.target.exists():
            what = "file" if self.target.is_file() else "path"
            is_empty = self.target.is_dir() and not any(self.target.iterdir())
            if not is_empty:
                raise DatasetExistsError(
                    f"`{self.target}` exists. Choose another {what}, or delete it."
                )

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep others from writing the same dataset, and remove the parts once it is written.

        Raises:
            DatasetExistsError: another process is writing it.
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
                if not any(self.directory.glob(self._kept)):
                    self.discard()
                raise
            self.discard()

    def new_place(self) -> Path:
        """Return where the dataset is to be written first; what an earlier call left is removed."""
        staged = self.directory / f"staged{self.target.suffix}"
        shutil.rmtree(staged, ignore_errors=True)
        return staged

    def publish(self, staged: Path) -> None:
        """Put the written dataset into its place."""
        (self.directory / _FINISHED).touch()
        if self.target.is_dir():  # an empty one
            self.target.rmdir()
        staged.replace(self.target)
