"""Many samples as directories below one: every sample gets a place of its own, in any order."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import DiskError, SampleError
from ..paths import folder_name, place_inside
from ..sample import Sample
from . import reading
from .writing import write_directory

FILE_NAMES = frozenset((*reading.REQUIRED, *reading.OPTIONAL))
"""Names of a sample's files, which no folder below a sample may have."""

_OF_ONE_SAMPLE = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})
"""What a file system has against one name; anything else stops the rest too."""


class SampleTree:
    """A directory in which each sample stands in the folder of its id.

    A sample may lie below another (`a/part_0` below `a`), whichever comes first. Where two samples
    have one id the second stands in `id-2`, and a part of an id that no folder can have, because it
    is too long or the name of a sample's file, is changed (`paths.folder_name`). Samples keep their
    ids: they are read from the file beside GraphNet's own.

    >>> import tempfile
    >>> from graphnet_datasets.sample import Input, Value
    >>> identity = Sample("a/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tree = SampleTree(Path(folder))
    ...     [tree.write(identity).relative_to(folder).as_posix() for _ in range(2)]
    ['a/identity', 'a/identity-2']
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._taken: set[Path] = set()

    def write(self, sample: Sample) -> Path:
        """Write a sample and return its folder.

        Raises:
            SampleError: it cannot be printed as source, or no folder can have its name here.
            UnsafePathError: a link below the root leads its id outside.
            DiskError: the disk is full or cannot be written.
        """
        try:
            return self._write(sample)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            if error.errno in _OF_ONE_SAMPLE:
                raise SampleError(
                    f"The sample `{sample.id[:80]}` cannot be written below `{self.root}`: "
                    f"{reason}. Choose a shorter path."
                ) from error
            raise DiskError(f"`{self.root}` cannot be written: {reason}.") from error

    def _write(self, sample: Sample) -> Path:
        self.root.mkdir(parents=True, exist_ok=True)
        # Beside the folders first: what stands below a sample must not be replaced with it.
        with tempfile.TemporaryDirectory(prefix=".sample-", dir=self.root) as temporary:
            written = write_directory(sample, Path(temporary) / "sample")
            folder = next(place for place in self._places(sample.id) if self._is_free(place))
            folder.mkdir(parents=True, exist_ok=True)
            for file in sorted(written.iterdir()):
                file.rename(folder / file.name)
        self._taken.add(folder)
        return folder

    def _places(self, sample_id: str) -> Iterator[Path]:
        name = folder_name(sample_id, FILE_NAMES)
        yield place_inside(self.root, name, sample_id)
        number = 2
        while True:
            yield place_inside(self.root, f"{name}-{number}", sample_id)
            number += 1

    def _is_free(self, folder: Path) -> bool:
        if folder in self._taken:
            return False
        if not os.path.lexists(folder):
            return True
        return folder.is_dir() and not any(os.path.lexists(folder / name) for name in FILE_NAMES)
