"""Landlock, the Linux security module that lets a process restrict its own file access.

A ruleset lists the rights that it restricts. A process under it has these rights only below the
paths of its rules. Children inherit the restriction, which cannot be lifted. See landlock(7).
"""

from __future__ import annotations

import ctypes
import functools
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: _IOCTL_DEV}
"""The rights added by each version of the interface."""
_RIGHTS_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
READ = READ_FILE | READ_DIR
WRITE = ((1 << 16) - 1) & ~(EXECUTE | _MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE)
"""All rights except executing files and creating devices."""
_SCOPES = 0b11
"""Abstract Unix sockets and signals to processes outside the restriction (version 6)."""


@functools.cache
def version() -> int:
    """Return the version of the Landlock interface, or 0 if the kernel does not offer it.

    >>> version() >= 0
    True
    """
    return max(_syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION), 0)


def restrict(rules: Iterable[tuple[str | os.PathLike[str], int]]) -> bool:
    """Restrict this thread and its future children to the rights of the rules.

    Args:
        rules: Pairs of a path and the rights below it. Missing paths are skipped.

    Returns:
        False if the kernel has no Landlock.

    Raises:
        OSError: The kernel refused a rule or the restriction.
    """
    available = version()
    if not available:
        return False
    handled = 0
    for since, rights in _RIGHTS_BY_VERSION.items():
        handled |= rights if since <= available else 0
    attributes = struct.pack("=QQQ", handled, 0, _SCOPES)
    size = 24 if available >= 6 else 16 if available >= 4 else 8
    ruleset = _checked(_CREATE_RULESET, attributes[:size], size, 0)
    try:
        for path, rights in rules:
            _add_rule(ruleset, Path(path), rights & handled)
        forbid_new_privileges()
        _checked(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def forbid_new_privileges() -> None:
    """Prevent this process and its children from gaining privileges by executing a file.

    The kernel requires this before an unprivileged process may restrict itself.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _add_rule(ruleset: int, path: Path, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _RIGHTS_OF_FILES
        if rights:
            rule = struct.pack("=Qi", rights, parent)
            _checked(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(parent)


def _checked(number: int, *arguments: int | bytes | None) -> int:
    result = _syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock's system call {number} failed: {os.strerror(code)}")
    return result


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    return libc.syscall(ctypes.c_long(number), *wide)
