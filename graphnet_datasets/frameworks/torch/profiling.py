"""Profiling of calls with torch's profiler: kernels on a GPU, operators on a CPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile


def start_profiler(device: str) -> None:
    """Start the profiler of a GPU for the first time in this process, which takes a second."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
        torch.cuda.synchronize(device)


def profile_call(
    call: Callable[[], Any], prepare: Callable[[], Any], device: str, *, num_calls: int = 3
) -> tuple[float, int]:
    """Return the total kernel time of one call in milliseconds, and the number of kernels.

    `prepare` runs before each call and is not profiled. On a GPU, all device work counts: kernels,
    copies and fills on all streams. On a CPU, a kernel is a dispatched torch operator including
    its nested calls; code fused by a compiler is not visible. Both figures are medians of
    `num_calls` calls; a GPU makes one extra call first to start the profiler.

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
        with profile(activities=activities) as profiler:
            call()
            if is_cuda:
                torch.cuda.synchronize(device)
        kernels = [*_kernels(_raw_events(profiler), is_cuda)]
        times_ms.append(sum(event.duration_ns() for event in kernels) / 1e6)
        counts.append(len(kernels))
    return statistics.median(times_ms[num_unseen:]), int(statistics.median(counts[num_unseen:]))


def _raw_events(profiler: profile) -> Iterable[Any]:
    """Return kineto's raw events instead of the Python objects of `profiler.events()`.

    Each Python object takes a tenth of a millisecond, which would dominate small graphs.
    """
    results = profiler.profiler and profiler.profiler.kineto_results
    return results.events() if results else ()


def _kernels(events: Iterable[Any], is_cuda: bool) -> Iterator[Any]:
    # User annotations, on CPU and GPU, are not work.
    seen = [
        event for event in events if not event.is_user_annotation() and not event.is_hidden_event()
    ]
    if is_cuda:
        yield from (event for event in seen if event.device_type().name == "CUDA")
        return
    operators = [event for event in seen if _is_operator(event)]
    operators.sort(key=lambda event: (event.start_thread_id(), event.start_ns(), -event.end_ns()))
    thread, ended_ns = None, 0
    for event in operators:
        if event.start_thread_id() != thread:
            thread, ended_ns = event.start_thread_id(), 0
        if event.end_ns() > ended_ns:  # otherwise nested in the previous operator
            ended_ns = event.end_ns()
            yield event


def _is_operator(event: Any) -> bool:
    """Return whether an event is an operator, whose name has a namespace."""
    return "::" in event.name()
