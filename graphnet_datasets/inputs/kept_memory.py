"""Memory that outlives the arrays in it, so that those of the next sample need no new pages.

The kernel clears a page when it is first written to, and a virtual machine may have to find it
first: writing to new memory takes 0.1 ns a byte at best, 2 ns at worst, where drawing what goes
there takes 0.1. So regions are kept when nothing is left in them. The kernel is told that it may
take their pages (madvise(2), MADV_FREE), which it does only when memory runs short.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import mmap
import os
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

HUGE_PAGE_BYTES = 2 * 2**20
REGION_BYTES = 64 * 2**20
"""Of addresses that are taken first. Each time after that as many as there are, or as an array
needs, so that there is a region for large arrays too; what was never written to is not there."""
KEPT_BYTES = 2 * 2**30
"""Free memory that is kept at most; what is free beyond it is given back, oldest region first."""
ALIGNMENT_BYTES = 64
"""Of an array: a line of the cache, as frameworks align their own."""


class KeptMemory:
    """Hands out arrays of bytes, and takes their memory back when they are collected."""

    def __init__(self) -> None:
        self._regions: list[_Region] = []
        self._lock = threading.Lock()
        self._ended: collections.deque[tuple[_Region, int, int]] = collections.deque()

    @property
    def num_kept_bytes(self) -> int:
        """Return how many bytes are free that some array has used."""
        self._settle()
        return sum(region.num_kept_bytes for region in self._regions)

    def take(self, num_bytes: int) -> npt.NDArray[np.uint8]:
        """Return as many bytes with whatever lies there; their memory comes back with the array.

        They are an array of NumPy's own where the system has no such memory to give.
        """
        size = -(-num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self._settle()
        with self._lock:
            found = next(((r, at) for r in self._regions if (at := r.take(size)) is not None), None)
            if found is None and (region := _new_region(max(size, self._size()))) is not None:
                self._regions.append(region)
                found = region, region.take(size)
        if found is None or found[1] is None:
            return np.empty(num_bytes, np.uint8)
        return np.asarray(_Loan(self, found[0], found[1], size))[:num_bytes]

    def _size(self) -> int:
        return sum(region.size for region in self._regions)

    def end(self, region: _Region, start: int, size: int) -> None:
        """Take a piece back. Called by the garbage collector, so at any time and in any thread."""
        self._ended.append((region, start, size))
        self._settle()

    def _settle(self) -> None:
        """Make free what has ended, unless that is under way further up or in another thread."""
        while self._ended and self._lock.acquire(blocking=False):
            try:
                while self._ended:
                    region, start, size = self._ended.popleft()
                    region.give(start, size)
                self._drop_regions()
            finally:
                self._lock.release()

    def _drop_regions(self) -> None:
        """Give regions back that nothing is in, the oldest first, down to what may be kept."""
        excess = sum(region.num_kept_bytes for region in self._regions) - KEPT_BYTES
        for region in [each for each in self._regions if each.is_free]:
            if excess <= 0:
                break
            excess -= region.num_kept_bytes
            self._regions.remove(region)


class _Region:
    """A range of addresses, and which parts of it are free: ordered, none beside another."""

    def __init__(self, mapping: mmap.mmap, size: int) -> None:
        self._mapping = mapping  # the addresses are given back with it
        start = np.frombuffer(mapping, np.uint8).ctypes.data
        self._start = start
        first = start + -start % HUGE_PAGE_BYTES
        self._first, self._end = first, first + size
        self._free: list[tuple[int, int]] = [(first, first + size)]
        self._used_to = first
        self.num_kept_bytes = 0
        """Bytes that are free and were in use before."""

    @property
    def size(self) -> int:
        return self._end - self._first

    @property
    def is_free(self) -> bool:
        return self._free == [(self._first, self._end)]

    def take(self, size: int) -> int | None:
        """Return the lowest address at which `size` bytes are free, and use them."""
        for place, (start, end) in enumerate(self._free):
            if end - start >= size:
                self._free[place : place + 1] = [(start + size, end)] if end - start > size else []
                self.num_kept_bytes -= max(0, min(start + size, self._used_to) - start)
                self._used_to = max(self._used_to, start + size)
                return start
        return None

    def give(self, start: int, size: int) -> None:
        """Make bytes free, and let the kernel have the pages that are free now."""
        end = start + size
        place = bisect.bisect(self._free, (start, end))
        low, high = start, end
        after, before = place, place
        if place < len(self._free) and self._free[place][0] == end:
            high, after = self._free[place][1], place + 1
        if place and self._free[place - 1][1] == start:
            low, before = self._free[place - 1][0], place - 1
        self._free[before:after] = [(low, high)]
        self.num_kept_bytes += size
        first = max(low, start - start % HUGE_PAGE_BYTES)
        first += -first % HUGE_PAGE_BYTES
        last = min(high, end + -end % HUGE_PAGE_BYTES)
        last -= last % HUGE_PAGE_BYTES
        if last > first:
            with contextlib.suppress(OSError):  # an older kernel: then it cannot take them
                self._mapping.madvise(mmap.MADV_FREE, first - self._start, last - first)


class _Loan:
    """The owner of an array's memory: NumPy keeps it for as long as the array or a view lives."""

    def __init__(self, memory: KeptMemory, region: _Region, start: int, size: int) -> None:
        # Not `__del__`: when the interpreter ends, what that would call may be gone.
        weakref.finalize(self, memory.end, region, start, size).atexit = False
        self.__array_interface__: dict[str, Any] = {
            "shape": (size,), "typestr": "|u1", "data": (start, False), "version": 3,
        }  # fmt: skip


def _new_region(num_bytes: int) -> _Region | None:
    """Return a region with room for an array; None where the system has no such memory."""
    if not hasattr(mmap, "MADV_FREE"):
        return None
    size = max(REGION_BYTES, -(-num_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES)
    try:
        # One page more: the system need not begin at a multiple of it.
        mapping = mmap.mmap(-1, size + HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        return None
    # Who tells NumPy not to ask for huge pages, as timed runs do, means all memory of inputs.
    is_refused = os.environ.get("NUMPY_MADVISE_HUGEPAGE") == "0"
    if hasattr(mmap, "MADV_HUGEPAGE") and not is_refused:
        with contextlib.suppress(OSError):  # a kernel without them
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return _Region(mapping, size)


_kept = KeptMemory()


def take(num_bytes: int) -> npt.NDArray[np.uint8]:
    """Return bytes of the memory that this process keeps."""
    return _kept.take(num_bytes)


def _begin_anew() -> None:
    """Leave a parent's memory alone: the lock may be held by a thread that the child lacks."""
    global _kept
    _kept = KeptMemory()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
