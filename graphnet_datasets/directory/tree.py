"""Trees of sample directories, with a unique folder for each sample."""

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
"""Names of a sample's files, which are not allowed for folders below a sample."""

_OF_ONE_SAMPLE = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})
"""File system errors that concern a single name; other errors affect all samples."""


class SampleTree:
    """A directory that stores each sample in the folder of its id.

    A sample may be nested in another (`a/part_0` in `a`), in any order of writing. If two samples
    have the same id, the second is stored in `id-2`. Parts of ids that are too long, or equal to
    the name of a sample's file, are changed (`paths.folder_name`). Samples keep their ids, which
    are stored in the file beside GraphNet's own files.

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
            SampleError: the sample cannot be printed as source, or its folder cannot be created.
            UnsafePathError: a link below the root redirects the folder outside.
            DiskError: the disk is full or not writable.
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
            raise DiskError(
                f"`{self.root}` cannot be written: {reason}. Free space, or choose another path."
            ) from error

    def _write(self, sample: Sample) -> Path:
        self.root.mkdir(parents=True, exist_ok=True)
        # Write elsewhere first, because nested folders of other samples must not be replaced.
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
