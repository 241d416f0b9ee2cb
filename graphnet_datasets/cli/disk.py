"""What a disk or a pipe refused, as a sentence that says where and what to do."""

from __future__ import annotations

import errno
import os

_REASONS = {
    errno.EACCES: "You have no right to read or write `{path}`. Ask its owner, or choose another "
    "place.",
    errno.EPERM: "Writing to `{path}` is not permitted. Choose another place.",
    errno.EROFS: "`{path}` is on a file system that cannot be written. Choose another place.",
    errno.ENOSPC: "There is no space left for `{path}`. Free some, or choose another place.",
    errno.EDQUOT: "Your quota leaves no space for `{path}`. Free some, or choose another place.",
    errno.EFBIG: "`{path}` would be larger than a file may be here (`ulimit -f`). Raise the "
    "limit, or choose another place.",
    errno.ENOTDIR: "`{path}` would lie in a directory, but a file stands there. Choose another "
    "place, or move the file.",
    errno.EISDIR: "`{path}` is a directory where a file is needed. Name a file.",
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
    """Return the sentence for an error of the disk, or None where it is about something else.

    Libraries wrap such an error in theirs, so what led to an error is looked at too.

    >>> describe_disk_error(IsADirectoryError(errno.EISDIR, "Is a directory", "runs"))
    '`runs` is a directory where a file is needed. Name a file.'
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
        reason = error.strerror or str(error).partition("\n")[0].rstrip(".") or "it failed"
        return f"`{_path_of(error)}` cannot be read or written: {reason}."
    return None


def _path_of(error: OSError) -> str:
    for name in (error.filename2, error.filename):
        if isinstance(name, str | bytes | os.PathLike):
            return os.fsdecode(name)
    return "the output"
