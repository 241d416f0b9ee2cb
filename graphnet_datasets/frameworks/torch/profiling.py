"""What torch's profiler sees of a call: the kernels of a GPU, or the operators of a CPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile


def profile_call(
    call: Callable[[], Any], prepare: Callable[[], Any], device: str, *, num_calls: int = 3
) -> tuple[float, int]:
    """Return the milliseconds that the kernels of one call take, and how many there are.

    `prepare` is called before each call and is not looked at. On a GPU a kernel is whatever the
    device did: kernels, copies and fills, of all streams. On a CPU it is an operator that torch
    dispatched, together with all that it called; code that a compiler fused is not seen. The
    figures are medians of `num_calls` calls, after one more on a GPU for the start of its profiler.

    >>> left = torch.ones(4, 4)
    >>> profile_call(lambda: torch.relu(left @ left), lambda: None, "cpu")[1]
    2
    """
    is_cuda = device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_cuda else [])]
    times_ms, counts = [], []
    num_unseen = 1 if is_cuda else 0
    for _ in range(num_unseen + num_calls):
        prepare()
        with profile(activities=activities, acc_events=True) as profiler:
            call()
            if is_cuda:
                torch.cuda.synchronize(device)
        events = [*_kernels(profiler.events() or [], is_cuda)]
        times_ms.append(sum(event.time_range.elapsed_us() for event in events) / 1000)
        counts.append(len(events))
    return statistics.median(times_ms[num_unseen:]), int(statistics.median(counts[num_unseen:]))


def _kernels(events: Iterable[Any], is_cuda: bool) -> Iterable[Any]:
    for event in events:
        if event.is_user_annotation:  # a region that somebody named, on the CPU and on the GPU
            continue
        if is_cuda:
            if event.device_type.name == "CUDA":
                yield event
        elif _is_operator(event) and not _is_within_operator(event):
            yield event


def _is_operator(event: Any) -> bool:
    """Tell an operator, whose name has a namespace, from regions of Python code."""
    return "::" in event.name


def _is_within_operator(event: Any) -> bool:
    parent = event.cpu_parent
    while parent is not None:
        if _is_operator(parent):
            return True
        parent = parent.cpu_parent
    return False
