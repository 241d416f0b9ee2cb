"""Excerpts of outputs that are kept until the end, in memory that is set aside for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...frameworks.outputs import MAX_EXCERPT
from ..handover import MAX_JUDGED, MAX_OUTPUTS

KEPT_BYTES = 256 * 2**20
"""Whole outputs that are held until the end; where they take more, those of one call."""
MIN_KEPT = 16
"""Calls of which excerpts are kept, and judged, however long they take."""

Outputs: TypeAlias = list[tuple[str, list[int], Any]]
"""Dtype, shape and elements, as bytes, of each output of a call."""


class KeptOutputs:
    """Room for the outputs of `most` calls of at most `num_bytes` each.

    What is kept where it lies is memory that the next call does not get: each finds a heap that has
    grown by one excerpt, and in it other pages, on which small calls take up to three times as
    long. So an excerpt is copied to a place of its own, and its memory is free as after any call.

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
        """Return the outputs with their elements at `place`, or in copies where they do not fit.

        Beyond the last place it is the first one's turn again.
        """
        begin = place % self._most * self._num_bytes
        end = begin + self._num_bytes
        put: Outputs = []
        for dtype, shape, elements in outputs:
            num_bytes = memoryview(elements).nbytes
            if not num_bytes or begin + num_bytes > end:
                put.append((dtype, shape, bytes(elements)))
                continue
            taken = self._room[begin : begin + num_bytes]
            taken[:] = memoryview(elements).cast("B")
            begin += num_bytes
            put.append((dtype, shape, taken))
        return put


def most_kept(outputs: Sequence[Any]) -> int:
    """Return of how many calls excerpts of such outputs can be held, and handed over."""
    num_bytes = min(sum(memoryview(each).nbytes for each in outputs), 8 * MAX_EXCERPT)
    most = min(MAX_OUTPUTS // max(1, len(outputs)), KEPT_BYTES // max(1, num_bytes))
    return max(MIN_KEPT, min(MAX_JUDGED, most))
