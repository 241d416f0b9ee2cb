"""Processes of a job whose server was killed: handed to this process, told from its own, killed.

A server holds on to all that its jobs start. A job that kills its server would set them free; so
while servers run, this process is a subreaper, and what lost its server becomes its child. Which of
its children those are is written on them: a server lowers a hard limit by one before its first job
(`mark`), all below inherit it, whatever they execute, and raising it again takes a capability that
jobs do not have. The children that this process started itself have its own limit.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time

from .linux import become_subreaper, cease_to_be_subreaper, children, descendants, is_subreaper

_MARKED = resource.RLIMIT_MSGQUEUE
"""Bytes in POSIX message queues: a limit that nothing here comes near, so that one less is felt by
nobody."""

_lock = threading.Lock()
_servers: set[int] = set()
_was_subreaper = False


def adopt_orphans_of(server: int) -> None:
    """Have what is left of `server`, a child of this process, become a child of this process.

    While any server is held the orphans of other programs that this process started come here too.
    They are left alone.
    """
    global _was_subreaper
    with _lock:
        if not _servers:
            _was_subreaper = is_subreaper()
            become_subreaper()
        _servers.add(server)


def kill_orphans_of(server: int, timeout_s: float = 10.0) -> None:
    """Kill and reap what is left of `server`, which has ended, and hold it no more."""
    with _lock:
        if server not in _servers:
            return
        _servers.discard(server)
        deadline_s = time.monotonic() + timeout_s
        while (orphans := _orphans()) and time.monotonic() < deadline_s:
            _kill_trees(orphans)
            time.sleep(0.002)
        if not _servers and not _was_subreaper:
            cease_to_be_subreaper()


def mark() -> None:
    """Mark this process, and so all that it will start, as one that belongs to a server."""
    _, hard = resource.getrlimit(_MARKED)
    lower = 2**20 if hard == resource.RLIM_INFINITY else max(hard - 1, 0)
    resource.setrlimit(_MARKED, (lower, lower))


def _orphans() -> list[int]:
    """Return the children of this process that have no server above them but bear its mark."""
    _, ours = resource.getrlimit(_MARKED)
    found = []
    for pid in children(os.getpid()):
        if pid not in _servers:
            with contextlib.suppress(OSError):  # it is gone, or another user's
                if resource.prlimit(pid, _MARKED)[1] != ours:
                    found.append(pid)
    return found


def _kill_trees(roots: list[int]) -> None:
    """Stop all processes of the trees, so that none can fork in answer to a death; then kill."""
    known: set[int] = set()
    while new := {*roots, *(pid for root in roots for pid in descendants(root))} - known:
        for pid in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        known |= new
    for pid in known:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    for pid in roots:  # by name: whatever else is a child here is somebody else's to wait for
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
