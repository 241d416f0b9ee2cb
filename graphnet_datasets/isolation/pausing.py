"""Stops all that a process has started, and lets it go on.

Stopped processes take no processor until they are continued; killing one works as ever, so who
keeps hold of a tree still does while it is stopped.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from .linux import descendants

_SETTLE_S = 0.2
"""A process that is stopped goes on until the kernel has it at its next chance."""


def stop_descendants(pid: int) -> None:
    """Stop every process below `pid`, which itself goes on, and wait until none is running."""
    known: set[int] = set()
    while new := set(descendants(pid)) - known:  # until none was started meanwhile
        for each in new:
            _signal(each, signal.SIGSTOP)
        known |= new
    deadline_s = time.monotonic() + _SETTLE_S
    while any(map(_is_running, known)) and time.monotonic() < deadline_s:
        time.sleep(0.0005)


def continue_descendants(pid: int) -> None:
    """Let every process below `pid` go on."""
    for each in descendants(pid):
        _signal(each, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _is_running(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        # The state stands behind the name, which may hold anything, in parentheses.
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state == b"R"
    return False
