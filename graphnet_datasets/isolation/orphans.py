"""Orphans of a killed fork server: adopted, recognised and killed by this process.

A server tracks all processes that its jobs start. A job that kills its server would free them, so
while servers run, this process is a subreaper and adopts the orphans. A resource limit identifies
them: a server lowers a hard limit by one before its first job (`mark`), and all descendants inherit
it, whatever they execute. Raising it again requires a capability that jobs lack. Children that this
process started itself keep the original limit.
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
"""Bytes in POSIX message queues: a limit so high that lowering it by one has no effect."""

_lock = threading.Lock()
_servers: set[int] = set()
_was_subreaper = False


def adopt_orphans_of(server: int) -> None:
    """Adopt the orphans of `server`, a child of this process, when it ends.

    While any server is registered, orphans of other programs that this process started also arrive
    here. They are left alone.
    """
    global _was_subreaper
    with _lock:
        if not _servers:
            _was_subreaper = is_subreaper()
            become_subreaper()
        _servers.add(server)


def kill_orphans_of(server: int, timeout_s: float = 10.0) -> None:
    """Kill and reap the orphans of `server`, which has ended, and unregister the server."""
    with _lock:
        if server not in _servers:
            return
        _servers.discard(server)
        deadline_s = time.monotonic() + timeout_s
        while (orphans := _orphans()) and time.monotonic() < deadline_s:
            kill_trees(orphans)
            time.sleep(0.002)
        if not _servers and not _was_subreaper:
            cease_to_be_subreaper()


def mark() -> None:
    """Mark this process and its future descendants as belonging to a server."""
    _, hard = resource.getrlimit(_MARKED)
    lower = 2**20 if hard == resource.RLIM_INFINITY else max(hard - 1, 0)
    resource.setrlimit(_MARKED, (lower, lower))


def _orphans() -> list[int]:
    """Return the marked children of this process that are not servers."""
    _, ours = resource.getrlimit(_MARKED)
    pids = []
    for pid in children(os.getpid()):
        if pid not in _servers:
            with contextlib.suppress(OSError):  # it is gone or belongs to another user
                if resource.prlimit(pid, _MARKED)[1] != ours:
                    pids.append(pid)
    return pids


def kill_trees(roots: list[int]) -> None:
    """Kill the process trees, after stopping all processes so that none can fork meanwhile."""
    stopped: set[int] = set()
    while new := {*roots, *(pid for root in roots for pid in descendants(root))} - stopped:
        for pid in new:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    for pid in roots:  # by id, because other children belong to other code
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
