"""Messages for disk and pipe errors, and early checks that results can be written."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

_REASONS = {
    errno.EACCES: "You have no right to read or write `{path}`. Ask its owner, or choose another "
    "place.",
    errno.EPERM: "Writing to `{path}` is not permitted. Choose another place.",
    errno.EROFS: "`{path}` is on a read-only file system. Choose another place.",
    errno.ENOSPC: "There is no space left for `{path}`. Free some, or choose another place.",
    errno.EDQUOT: "Your quota leaves no space for `{path}`. Free some, or choose another place.",
    errno.EFBIG: "`{path}` would exceed the maximum file size (`ulimit -f`). Raise the limit, or "
    "choose another place.",
    errno.ENOTDIR: "A parent of `{path}` is a file, not a directory. Choose another place, or move "
    "the file.",
    errno.EISDIR: "`{path}` is a directory, not a file. Choose a file.",
    errno.EEXIST: "`{path}` exists already. Choose another place, or delete it.",
    errno.ENOTEMPTY: "`{path}` exists and is not empty. Choose another place, or delete it.",
    errno.ENOENT: "There is no file or directory `{path}`.",
    errno.ENAMETOOLONG: "The name `{path}` is too long for this file system. Choose a shorter one.",
    errno.ELOOP: "`{path}` is a link that leads back to itself. Remove it.",
    errno.EMFILE: "This program may not open more files (`ulimit -n`). Raise the limit.",
    errno.ENFILE: "This machine cannot open more files. Close other programs.",
    errno.EIO: "The device under `{path}` failed to read or write. Check the disk.",
    errno.EPIPE: "The output was closed before all of it was written.",
    errno.EBADF: "The output is closed. Leave it open, or send it to a file.",
}


def describe_disk_error(error: BaseException) -> str | None:
    """Return a message for a disk error, or None for other errors.

    Libraries wrap disk errors in their own, so the causes of an error are checked too.

    >>> describe_disk_error(IsADirectoryError(errno.EISDIR, "Is a directory", "runs"))
    '`runs` is a directory, not a file. Choose a file.'
    >>> describe_disk_error(ValueError("something else")) is None
    True
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, OSError) and link.errno in _REASONS:
            return _REASONS[link.errno].format(path=_path_of(link))
        link = link.__cause__ or link.__context__
    if isinstance(error, OSError):
        reason = error.strerror or str(error).partition("\n")[0].rstrip(".") or "unknown error"
        return f"`{_path_of(error)}` cannot be read or written: {reason}."
    return None


def _path_of(error: OSError) -> str:
    for name in (error.filename2, error.filename):
        if isinstance(name, str | bytes | os.PathLike):
            return os.fsdecode(name)
    return "the output"


@contextlib.contextmanager
def new_output(
    *outputs: Path | str | None, kind: Literal["file", "directory"] | None = None
) -> Iterator[None]:
    """Check early that outputs can be written, and remove empty new folders if the work fails.

    The work may take hours, so an unwritable path is reported before it starts. Paths that are None
    and URLs are not checked. Existing outputs must be of `kind`.

    Raises:
        OSError: a path cannot be written.
    """
    missing: list[Path] = []
    for output in outputs:
        if output is None or "://" in str(output):
            continue
        out = Path(output).absolute()
        if kind == "file" and out.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(output))
        if kind == "directory" and out.is_file():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(output))
        absent = [place for place in (out, *out.parents) if not place.exists()]
        _try_to_write(out.parents[len(absent) - 1] if absent else out, out)
        missing += absent
    try:
        yield
    except BaseException:
        for place in missing:
            with contextlib.suppress(OSError):  # the folder is not empty
                place.rmdir()
        raise


def _try_to_write(there: Path, out: Path) -> None:
    """Create and remove an unnamed file in the nearest existing folder."""
    if there == out and not there.is_dir():
        there = out.parent  # a file is replaced by a new file in the same folder
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(out))
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        # Some read-only file systems report that the file does not exist.
        code = errno.EACCES if error.errno == errno.ENOENT else error.errno
        raise OSError(code, os.strerror(code or 0), str(out)) from error
