"""What torch's profiler sees of a call: the kernels of a GPU, or the operators of a CPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
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
        with profile(activities=activities) as profiler:
            call()
            if is_cuda:
                torch.cuda.synchronize(device)
        kernels = [*_kernels(_raw_events(profiler), is_cuda)]
        times_ms.append(sum(event.duration_ns() for event in kernels) / 1e6)
        counts.append(len(kernels))
    return statistics.median(times_ms[num_unseen:]), int(statistics.median(counts[num_unseen:]))


def _raw_events(profiler: profile) -> Iterable[Any]:
    """Return what kineto has noted, of which `profiler.events()` would make objects of Python.

    Those take a tenth of a millisecond each, most of what a profiled call of a small graph takes.
    """
    results = profiler.profiler and profiler.profiler.kineto_results
    return results.events() if results else ()


def _kernels(events: Iterable[Any], is_cuda: bool) -> Iterator[Any]:
    # A region that somebody named, on the CPU and on the GPU, is no work.
    seen = [each for each in events if not each.is_user_annotation() and not each.is_hidden_event()]
    if is_cuda:
        yield from (each for each in seen if each.device_type().name == "CUDA")
        return
    operators = [each for each in seen if _is_operator(each)]
    operators.sort(key=lambda each: (each.start_thread_id(), each.start_ns(), -each.end_ns()))
    thread, ended_ns = None, 0
    for each in operators:
        if each.start_thread_id() != thread:
            thread, ended_ns = each.start_thread_id(), 0
        if each.end_ns() > ended_ns:  # otherwise within the one before it
            ended_ns = each.end_ns()
            yield each


def _is_operator(event: Any) -> bool:
    """Tell an operator, whose name has a namespace, from regions of Python code."""
    return "::" in event.name()
