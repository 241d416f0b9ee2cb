"""What was found by looking through samples, kept for as long as they live."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

from .sample import Sample

T = TypeVar("T")


class PerSample(Generic[T]):
    """Values by the identity of samples: to compare or to hash a large one takes too long.

    >>> known = PerSample[int]()
    >>> sample = Sample("example/empty", "torch", "other", (), (), ())
    >>> known.put(sample, 0), known.get(sample)
    (0, 0)
    >>> known.get(Sample("example/empty", "torch", "other", (), (), ())) is None
    True
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[weakref.ref[Sample], T]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def get(self, sample: Sample) -> T | None:
        """Return what was put for this very sample; None if nothing was."""
        known = self._found.get(id(sample))
        return None if known is None or known[0]() is not sample else known[1]

    def put(self, sample: Sample, found: T) -> T:
        """Keep `found` until the sample is gone, and return it."""
        # At the end of the interpreter a module's names are gone before its samples are, so what
        # a dying sample calls is at hand here.
        key, forget = id(sample), self._found.pop
        self._found[key] = (weakref.ref(sample, lambda _: forget(key, None)), found)
        return found
