"""Memory for the many tensors of one sample, side by side on huge pages.

The kernel clears a page when it is first written to. With pages of 4 KiB that takes longer than
drawing what goes there: 0.6 ns a byte on a virtual machine, where huge pages of 2 MiB take 0.1 ns,
and pages that were there before none (`kept_memory`). NumPy asks for huge pages for arrays of 4 MiB
and more, but most weights are smaller.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from . import kept_memory

FIRST_BYTES = 2 * 2**20
"""What lies by itself before tensors are packed: a page may be nearly empty in the end."""
_SMALLEST_BYTES = 512
"""Of a tensor that is packed: what is smaller comes out of pages that are there already."""


_num_taken: contextvars.ContextVar[int | None] = contextvars.ContextVar("taken", default=None)
"""Bytes of the arrays so far that are put side by side; None where none are."""


@contextlib.contextmanager
def packed() -> Iterator[None]:
    """Have `empty` put arrays side by side, in memory that is kept for others when they end.

    For arrays that are needed for about as long as each other: pages between those that live are
    free for other arrays only.
    """
    token = _num_taken.set(0)
    try:
        yield
    finally:
        _num_taken.reset(token)


def empty(size: int, dtype: npt.DTypeLike) -> npt.NDArray:
    """Return an array of `size` elements, whatever these are.

    >>> with packed():
    ...     _, first, second = (empty(size, np.float32) for size in (2**20, 1000, 5000))
    >>> second.ctypes.data - first.ctypes.data
    4032
    """
    num_taken = _num_taken.get()
    num_bytes = size * np.dtype(dtype).itemsize
    if num_taken is None or num_bytes < _SMALLEST_BYTES:
        return np.empty(size, dtype)
    _num_taken.set(num_taken + num_bytes)
    if num_taken + num_bytes <= FIRST_BYTES:
        return np.empty(size, dtype)
    return kept_memory.take(num_bytes).view(dtype)
