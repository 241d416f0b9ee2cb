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
_usual = (0, 0, 0)
"""What to go back to, once no thread is inside any more."""
_num_seldom = 0
_num_resting = 0


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Have the collector run a hundredth as often; where it is off, or slower already, it stays so.

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
    """Have the collector rest while packages are imported, for they make hardly any garbage.

    What was made is counted as old afterwards: as young it would be gone through all at once when
    the next object is made.

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
        if not _usual[0]:  # it is off, and stays so
            return
        if _num_resting:
            gc.set_threshold(0, *_usual[1:])
            return
        is_much = gc.get_count()[0] >= SELDOM[0]
        # The second question takes as long as there is much frozen, as in a job of a fork server.
        if resting and is_much and not gc.get_freeze_count():
            gc.freeze()  # all objects, of any age, …
            gc.unfreeze()  # … which makes them old without a look at one of them
        gc.set_threshold(*(map(max, _usual, SELDOM) if _num_seldom else _usual))
