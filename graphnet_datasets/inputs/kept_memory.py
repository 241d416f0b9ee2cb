"""A pool of memory for arrays, which avoids allocating new pages for each sample.

The kernel zeroes a page on its first write, and a virtual machine may have to allocate it first.
Writing to new memory therefore takes 0.1 to 2 ns per byte, while drawing the data takes 0.1 ns.
Free regions are kept for reuse. They are marked with MADV_FREE (madvise(2)), so that the kernel can
reclaim their pages if memory runs short.
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
"""Size of the first region. Later regions double the total size, or fit a larger array. Address
space that was never written to uses no memory."""
KEPT_BYTES = 2 * 2**30
"""Maximum free memory that is kept; beyond it, the oldest free regions are released first."""
ALIGNMENT_BYTES = 64
"""Alignment of arrays: a cache line, as in the frameworks."""


class KeptMemory:
    """Allocates byte arrays, and reclaims their memory when they are garbage collected."""

    def __init__(self) -> None:
        self._regions: list[_Region] = []
        self._lock = threading.Lock()
        self._ended: collections.deque[tuple[_Region, int, int]] = collections.deque()

    @property
    def num_kept_bytes(self) -> int:
        """The number of free bytes that have been in use before."""
        self._settle()
        return sum(region.num_kept_bytes for region in self._regions)

    def take(self, num_bytes: int) -> npt.NDArray[np.uint8]:
        """Return an uninitialized array of bytes from the pool.

        If the system cannot provide a region, the result is an ordinary NumPy array.
        """
        size = -(-num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self._settle()
        with self._lock:
            piece = next(((r, at) for r in self._regions if (at := r.take(size)) is not None), None)
            if piece is None and (region := _new_region(max(size, self._size()))) is not None:
                self._regions.append(region)
                piece = region, region.take(size)
        if piece is None or piece[1] is None:
            return np.empty(num_bytes, np.uint8)
        return np.asarray(_Loan(self, piece[0], piece[1], size))[:num_bytes]

    def _size(self) -> int:
        return sum(region.size for region in self._regions)

    def end(self, region: _Region, start: int, size: int) -> None:
        """Queue a piece for reclaiming. The garbage collector may call this at any time and in
        any thread."""
        self._ended.append((region, start, size))
        self._settle()

    def _settle(self) -> None:
        """Reclaim queued pieces, unless an outer frame or another thread is already doing so."""
        while self._ended and self._lock.acquire(blocking=False):
            try:
                while self._ended:
                    region, start, size = self._ended.popleft()
                    region.give(start, size)
                self._drop_regions()
            finally:
                self._lock.release()

    def _drop_regions(self) -> None:
        """Release unused regions, oldest first, until at most `KEPT_BYTES` are kept."""
        excess = sum(region.num_kept_bytes for region in self._regions) - KEPT_BYTES
        for region in [candidate for candidate in self._regions if candidate.is_free]:
            if excess <= 0:
                break
            excess -= region.num_kept_bytes
            self._regions.remove(region)


class _Region:
    """A range of addresses with a sorted list of its free, non-adjacent parts."""

    def __init__(self, mapping: mmap.mmap, size: int) -> None:
        self._mapping = mapping  # keeps the address range mapped
        start = np.frombuffer(mapping, np.uint8).ctypes.data
        self._start = start
        first = start + -start % HUGE_PAGE_BYTES
        self._first, self._end = first, first + size
        self._free: list[tuple[int, int]] = [(first, first + size)]
        self._used_to = first
        self.num_kept_bytes = 0
        """Number of free bytes that have been in use before."""

    @property
    def size(self) -> int:
        return self._end - self._first

    @property
    def is_free(self) -> bool:
        return self._free == [(self._first, self._end)]

    def take(self, size: int) -> int | None:
        """Allocate `size` bytes at the lowest free address; return the address, or None if there
        is no room."""
        for place, (start, end) in enumerate(self._free):
            if end - start >= size:
                self._free[place : place + 1] = [(start + size, end)] if end - start > size else []
                self.num_kept_bytes -= max(0, min(start + size, self._used_to) - start)
                self._used_to = max(self._used_to, start + size)
                return start
        return None

    def give(self, start: int, size: int) -> None:
        """Free bytes, and mark the pages that are now free as reclaimable."""
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
            with contextlib.suppress(OSError):  # kernels without MADV_FREE
                self._mapping.madvise(mmap.MADV_FREE, first - self._start, last - first)


class _Loan:
    """The owner of an array's memory; NumPy keeps it alive as long as the array or a view of it."""

    def __init__(self, memory: KeptMemory, region: _Region, start: int, size: int) -> None:
        # Not `__del__`: at interpreter exit, the objects that it needs may be gone.
        weakref.finalize(self, memory.end, region, start, size).atexit = False
        self.__array_interface__: dict[str, Any] = {
            "shape": (size,), "typestr": "|u1", "data": (start, False), "version": 3,
        }  # fmt: skip


def _new_region(num_bytes: int) -> _Region | None:
    """Return a region with room for an array, or None if the system cannot provide it."""
    if not hasattr(mmap, "MADV_FREE"):
        return None
    size = max(REGION_BYTES, -(-num_bytes // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES)
    try:
        # One extra page for alignment.
        mapping = mmap.mmap(-1, size + HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        return None
    # Timed runs set this variable to prevent huge pages in NumPy; respect it here as well.
    is_refused = os.environ.get("NUMPY_MADVISE_HUGEPAGE") == "0"
    if hasattr(mmap, "MADV_HUGEPAGE") and not is_refused:
        with contextlib.suppress(OSError):  # kernels without huge pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return _Region(mapping, size)


_pool = KeptMemory()


def take(num_bytes: int) -> npt.NDArray[np.uint8]:
    """Return bytes from this process's pool."""
    return _pool.take(num_bytes)


def _begin_anew() -> None:
    """Start with an empty pool after a fork: a thread missing in the child may hold the parent's
    lock."""
    global _pool
    _pool = KeptMemory()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
