"""Waiting for other processes and threads, for as long as they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_until(condition: Callable[[], Any]) -> None:
    """Return as soon as `condition()` is true.

    There is no limit: on a slow or busy machine a test takes longer and has the same verdict.
    """
    while not condition():
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_until_gone(pid: int) -> None:
    """Return as soon as a process has ended."""
    wait_until(lambda: not is_alive(pid))
