"""Pausing and resuming all descendants of a process.

Stopped processes use no processor time until they are resumed. They can still be killed, so the
owner of the tree keeps control of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from .linux import descendants

_SETTLE_S = 0.2
"""Time for the kernel to stop the processes after the signal."""

_STOPPED = (b"T", b"t", b"Z", b"X")
"""States of stopped and ended processes. One that waits in the kernel stops when it returns."""


def stop_descendants(*pids: int) -> None:
    """Stop every process below `pids`, but not `pids` themselves, and wait for them to stop."""
    signalled: set[int] = set()
    deadline_s = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline_s:
        processes = {child for pid in pids for child in descendants(pid)}
        # A process may start others until it has stopped.
        new = processes - signalled
        for child in new:
            _signal(child, signal.SIGSTOP)
        signalled |= new
        if not new and all(map(_has_stopped, processes)):
            return
        time.sleep(0.0005)


def continue_descendants(pid: int) -> None:
    """Resume every process below `pid`."""
    for child in descendants(pid):
        _signal(child, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _has_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        # The state follows the parenthesised name, which may itself contain parentheses.
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state in _STOPPED
    return True
