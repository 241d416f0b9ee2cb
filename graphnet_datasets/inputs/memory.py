"""Memory for the many tensors of one sample, side by side on huge pages.

The kernel clears a page when it is first written to. With pages of 4 KiB that takes longer than
drawing what goes there: 0.6 ns a byte on a virtual machine, where huge pages of 2 MiB take 0.1 ns.
NumPy asks for huge pages for arrays of 4 MiB and more, but most weights are smaller.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

HUGE_PAGE_BYTES = 2 * 2**20
CHUNK_BYTES = 16 * 2**20
"""Memory that tensors share at most; it is given back when none of them is left."""
FIRST_BYTES = 2 * 2**20
"""What lies by itself before tensors are packed: a page may be nearly empty in the end."""
_ALIGNMENT_BYTES = 64
"""Of a tensor: a line of the cache, as frameworks align their own."""
_SMALLEST_BYTES = 512
"""Of a tensor that is packed: what is smaller comes out of pages that are there already."""


class _Chunks:
    """Cuts arrays out of chunks of memory; a chunk lives as long as one of its arrays."""

    def __init__(self) -> None:
        self._chunk: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._used = 0
        self._before = 0

    def take(self, num_bytes: int) -> npt.NDArray[np.uint8]:
        """Return as many bytes that nothing was written to."""
        if self._before < FIRST_BYTES:
            self._before += num_bytes
            return np.empty(num_bytes, np.uint8)
        if self._used + num_bytes > self._chunk.size:
            # What is never written to, before the first page and behind the last, is never there.
            memory = np.empty(CHUNK_BYTES + HUGE_PAGE_BYTES, np.uint8)
            start = -memory.ctypes.data % HUGE_PAGE_BYTES
            self._chunk, self._used = memory[start : start + CHUNK_BYTES], 0
        taken = self._chunk[self._used : self._used + num_bytes]
        self._used += -(-num_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        return taken


_chunks: contextvars.ContextVar[_Chunks | None] = contextvars.ContextVar("chunks", default=None)


@contextlib.contextmanager
def packed() -> Iterator[None]:
    """Have `empty` put arrays side by side.

    For arrays that are needed for about as long as each other: none gives its memory back before
    those beside it do.
    """
    token = _chunks.set(_Chunks())
    try:
        yield
    finally:
        _chunks.reset(token)


def empty(size: int, dtype: npt.DTypeLike) -> npt.NDArray:
    """Return an array of `size` elements that nothing was written to.

    >>> with packed():
    ...     few, first, second = (empty(size, np.float32) for size in (2**20, 1000, 5000))
    >>> second.ctypes.data - first.ctypes.data, first.ctypes.data % 2**21
    (4032, 0)
    """
    chunks = _chunks.get()
    num_bytes = size * np.dtype(dtype).itemsize
    if chunks is None or not _SMALLEST_BYTES <= num_bytes <= CHUNK_BYTES:
        return np.empty(size, dtype)
    return chunks.take(num_bytes).view(dtype)
