"""Python's garbage collector during work that makes many objects and leaves hardly any garbage.

To import torch is such work, and so is making a graph: a tenth to a third of the time of either
goes into looking through what is there to stay.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

SELDOM = (50_000, 50, 1000)
"""Thresholds during such work: garbage stays bounded, and what a framework holds is not gone
through again for each few hundred operators."""

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""What to go back to, once for each thread that is inside."""


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Have the collector run a hundredth as often; where it is off, or slower already, it stays so.

    >>> with collecting_seldom():
    ...     gc.get_threshold()[0] >= 50000
    True
    """
    with _lock:
        found = gc.get_threshold()
        _before.append(_before[0] if _before else found)
        if found[0]:  # 0 switches it off
            gc.set_threshold(*map(max, found, SELDOM))
    try:
        yield
    finally:
        with _lock:
            last = _before.pop()
            if not _before:
                gc.set_threshold(*last)
