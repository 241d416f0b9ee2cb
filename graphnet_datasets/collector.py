"""Control of Python's garbage collector during work that creates many objects but little garbage.

Importing torch and building a graph are such work: the collector would take a tenth to a third of
their time to examine objects that all survive.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

SELDOM = (50_000, 50, 1000)
"""Thresholds during such work. Garbage stays limited, and the framework's objects are not examined
again for every few hundred operators.
"""

_lock = threading.Lock()
_usual = (0, 0, 0)
"""The thresholds to restore when no thread is inside a context."""
_num_seldom = 0
_num_resting = 0


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Make the collector run a hundredth as often, unless it is disabled or already slower.

    >>> with collecting_seldom():
    ...     gc.get_threshold()[0] >= 50000
    True
    """
    _change(seldom=1)
    try:
        yield
    finally:
        _change(seldom=-1)


@contextlib.contextmanager
def not_collecting() -> Iterator[None]:
    """Pause the collector during imports, which produce almost no garbage.

    The new objects are moved to the oldest generation. Otherwise the next allocation would examine
    all of them.

    >>> with not_collecting():
    ...     gc.get_threshold()[0]
    0
    """
    _change(resting=1)
    try:
        yield
    finally:
        _change(resting=-1)


def _change(*, seldom: int = 0, resting: int = 0) -> None:
    global _usual, _num_seldom, _num_resting
    with _lock:
        if not (_num_seldom or _num_resting):
            _usual = gc.get_threshold()
        _num_seldom += seldom
        _num_resting += resting
        if not _usual[0]:  # disabled: keep it so
            return
        if _num_resting:
            gc.set_threshold(0, *_usual[1:])
            return
        is_much = gc.get_count()[0] >= SELDOM[0]
        # Counting frozen objects is slow if there are many, as in a job of a fork server.
        if resting and is_much and not gc.get_freeze_count():
            gc.freeze()  # all objects, of any age, …
            gc.unfreeze()  # … which makes them old without examining them
        gc.set_threshold(*(map(max, _usual, SELDOM) if _num_seldom else _usual))
