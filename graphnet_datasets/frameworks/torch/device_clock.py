"""A clock of CUDA events, bound before any candidate is imported."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from ..protocols import Reading

_perf_counter_ns = time.perf_counter_ns


class CudaEventClock:
    """CUDA events around the call, on the current stream, after the device has become idle.

    The device is synchronized before the end is read, so that work on a side stream is not missed.
    If other streams were still busy, `measure` adds the wall-clock time from the last event to the
    end of the synchronization.
    """

    name = "cuda_event"

    def __init__(self, device: Any = None) -> None:
        event = torch.cuda.Event
        self._start, self._end = event(enable_timing=True), event(enable_timing=True)
        self._record, self._elapsed_ms = event.record, event.elapsed_time
        self._wait = event.synchronize
        # `torch.cuda.synchronize` looks this up at each call; a candidate could replace it.
        wait_for_device, on_device = torch._C._cuda_synchronize, torch.cuda.device

        def synchronize(device: Any) -> None:
            with on_device(device):
                wait_for_device()

        self._synchronize = synchronize
        self._device = torch.device("cuda" if device is None else device)
        self._now = _perf_counter_ns

    def measure(self, call: Callable[[], Any]) -> Reading:
        """Time one call by CUDA events; the class docstring covers side streams."""
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
        # An idle device synchronizes in a few microseconds; longer means another stream was busy.
        elapsed_ms += others_ms if others_ms > 0.05 else 0.0
        return Reading(result, elapsed_ms, (ended - started) / 1e6)

    def now_s(self) -> float:
        """Return the seconds of `perf_counter_ns`."""
        return self._now() / 1e9
