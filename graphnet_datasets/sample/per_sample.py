"""Computed values attached to samples for their lifetime."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from .sample import Sample

T = TypeVar("T")


class PerSample(Generic[T]):
    """A mapping of samples to values by identity, because comparing or hashing samples is slow.

    >>> counts = PerSample[int]()
    >>> sample = Sample("example/empty", "torch", "other", (), (), ())
    >>> counts.put(sample, 0), counts.get(sample)
    (0, 0)
    >>> counts.get(Sample("example/empty", "torch", "other", (), (), ())) is None
    True
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Sample], T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, sample: Sample) -> T | None:
        """Return the value stored for this sample object, or None."""
        entry = self._entries.get(id(sample))
        return None if entry is None or entry[0]() is not sample else entry[1]

    def put(self, sample: Sample, value: T) -> T:
        """Store a value for the lifetime of the sample, and return it."""
        # Bound to locals, because module globals may be gone when samples are finalized at exit.
        key, forget = id(sample), self._entries.pop
        self._entries[key] = (weakref.ref(sample, lambda _: forget(key, None)), value)
        return value
