"""Storage for excerpts of outputs until the end of a run, in memory allocated in advance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...frameworks.outputs import MAX_EXCERPT
from ..handover import MAX_JUDGED, MAX_OUTPUTS

KEPT_BYTES = 256 * 2**20
"""The limit of whole outputs stored until the end. If they take more, those of one call are stored.
"""
MIN_KEPT = 16
"""The minimum number of calls whose excerpts are stored and judged, however long this takes."""

Outputs: TypeAlias = list[tuple[str, list[int], Any]]
"""The dtype, shape and elements, as bytes, of each output of a call."""


class KeptOutputs:
    """Storage for the outputs of `most` calls of at most `num_bytes` bytes each.

    An output that stays allocated is memory that the next call cannot reuse. The heap would grow by
    one excerpt per call and small calls would use new pages, which makes them up to three times as
    slow. An excerpt is therefore copied to preallocated storage and its memory is freed as after
    any call.

    >>> kept = KeptOutputs(2, 8)
    >>> kept.put(1, [("uint8", [3], b"abc"), ("uint8", [1], b"d")])
    [('uint8', [3], <memory at ...>), ('uint8', [1], <memory at ...>)]
    >>> [bytes(elements) for _, _, elements in kept.put(0, [("uint8", [9], b"123456789")])]
    [b'123456789']
    """

    __slots__ = ("_most", "_num_bytes", "_room")

    def __init__(self, most: int, num_bytes: int) -> None:
        self._most, self._num_bytes = most, num_bytes
        self._room = memoryview(bytearray(most * num_bytes))

    def put(self, place: int, outputs: Outputs) -> Outputs:
        """Return the outputs with their elements stored at `place`, or in copies if too large.

        `place` wraps around after the last place.
        """
        begin = place % self._most * self._num_bytes
        end = begin + self._num_bytes
        put: Outputs = []
        for dtype, shape, elements in outputs:
            num_bytes = memoryview(elements).nbytes
            if not num_bytes or begin + num_bytes > end:
                put.append((dtype, shape, bytes(elements)))
                continue
            stored = self._room[begin : begin + num_bytes]
            stored[:] = memoryview(elements).cast("B")
            begin += num_bytes
            put.append((dtype, shape, stored))
        return put


def most_kept(outputs: Sequence[Any]) -> int:
    """Return the number of calls whose excerpts can be stored and handed over."""
    num_bytes = min(sum(memoryview(elements).nbytes for elements in outputs), 8 * MAX_EXCERPT)
    most = min(MAX_OUTPUTS // max(1, len(outputs)), KEPT_BYTES // max(1, num_bytes))
    return max(MIN_KEPT, min(MAX_JUDGED, most))
