"""Clocks that time one call. They are bound before any candidate is imported.

A candidate that replaces `time.perf_counter_ns` in its process changes nothing here: the function
is held by the clock from this module's import on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

_perf_counter_ns = time.perf_counter_ns


class Reading(NamedTuple):
    """What a call returned, and its time in milliseconds by a clock and by the wall clock."""

    result: Any
    elapsed_ms: float
    wall_ms: float


class Clock(Protocol):
    """Times single calls."""

    name: str

    def measure(self, call: Callable[[], Any]) -> Reading:
        """Call `call` and return its result and the times that it took."""
        ...

    def now_s(self) -> float:
        """Return the wall clock in seconds, for budgets."""
        ...


class WallClock:
    """`perf_counter_ns` around the call, with the whole device synchronised on both sides."""

    def __init__(self, synchronize: Callable[[], None] | None = None) -> None:
        self.name = "perf_counter" if synchronize is None else "perf_counter_synchronized"
        self._now = _perf_counter_ns
        self._synchronize = synchronize

    def measure(self, call: Callable[[], Any]) -> Reading:
        """Time one call; a result of 0 is recorded as the clock's step of 1 ns."""
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
        # Without `max`: a builtin is looked up in each call, and could be another one by then.
        elapsed_ms = (ended - started) / 1e6 if ended > started else 1e-6
        return Reading(result, elapsed_ms, elapsed_ms)

    def now_s(self) -> float:
        """Return the seconds of `perf_counter_ns`."""
        return self._now() / 1e9


class CudaEventClock:
    """Device events around the call, on the current stream, after the device has gone idle.

    The whole device is synchronised before the end is read, so that work on a side stream cannot
    end later than the clock: `measure` raises the event time to the wall time from the last event
    to the end of the synchronisation wherever other streams were still at work.
    """

    name = "cuda_event"

    def __init__(self, device: Any = None) -> None:
        import torch

        event = torch.cuda.Event
        self._start, self._end = event(enable_timing=True), event(enable_timing=True)
        self._record, self._elapsed_ms = event.record, event.elapsed_time
        self._wait = event.synchronize
        # `torch.cuda.synchronize` looks this up again in each call; a candidate could replace it.
        wait_for_device, on_device = torch._C._cuda_synchronize, torch.cuda.device

        def synchronize(device: Any) -> None:
            with on_device(device):
                wait_for_device()

        self._synchronize = synchronize
        self._device = torch.device("cuda" if device is None else device)
        self._now = _perf_counter_ns

    def measure(self, call: Callable[[], Any]) -> Reading:
        """Time one call by events; see the class for what happens on side streams."""
        self._synchronize(self._device)
        started = self._now()
        self._record(self._start)
        result = call()
        self._record(self._end)
        self._wait(self._end)
        stream_ended = self._now()
        self._synchronize(self._device)
        ended = self._now()
        others_ms = (ended - stream_ended) / 1e6
        elapsed_ms = self._elapsed_ms(self._start, self._end)
        # An idle device synchronises in a few microseconds; more means another stream ran on.
        elapsed_ms += others_ms if others_ms > 0.05 else 0.0
        return Reading(result, elapsed_ms, (ended - started) / 1e6)

    def now_s(self) -> float:
        """Return the seconds of `perf_counter_ns`."""
        return self._now() / 1e9
