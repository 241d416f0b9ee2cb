"""The wall clock, bound before any candidate is imported.

The clock keeps the `time.perf_counter_ns` of this module's import. A candidate that replaces the
function in its process has no effect on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..frameworks.protocols import Reading

_perf_counter_ns = time.perf_counter_ns


class WallClock:
    """`perf_counter_ns` around the call, with the device synchronized before and after it."""

    def __init__(self, synchronize: Callable[[], None] | None = None) -> None:
        self.name = "perf_counter" if synchronize is None else "perf_counter_synchronized"
        self._now = _perf_counter_ns
        self._synchronize = synchronize

    def measure(self, call: Callable[[], Any]) -> Reading:
        """Time one call; an elapsed time of 0 is recorded as 1 ns, the resolution of the clock."""
        now, synchronize = self._now, self._synchronize
        if synchronize is None:
            started = now()
            result = call()
            ended = now()
        else:
            synchronize()
            started = now()
            result = call()
            synchronize()
            ended = now()
        # `max` would be looked up at each call, and a candidate could have replaced it.
        elapsed_ms = (ended - started) / 1e6 if ended > started else 1e-6
        return Reading(result, elapsed_ms, elapsed_ms)

    def now_s(self) -> float:
        """Return the seconds of `perf_counter_ns`."""
        return self._now() / 1e9
