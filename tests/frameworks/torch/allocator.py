"""The peak of torch's CPU allocator during a call, measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def measure_peak(call: Callable[[], Any]) -> int:
    """Return the most bytes that `call` had allocated at one time beyond what there was before."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        result = call()
    del result
    events: list[Any] = [
        each
        for each in profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
        if each.name() == "[memory]"
    ]
    events.sort(key=lambda each: each.start_ns())
    live = peak = 0
    for each in events:
        live += each.nbytes()
        peak = max(peak, live)
    return peak
