"""Candidates that forge how long they take; each does honest work of `WORK_S` in every call."""

# ruff: noqa: ARG001 (every candidate has the same arguments, used or not)

from __future__ import annotations

import builtins
import ctypes
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from graphnet_datasets.benchmark.child.arms import Arm
from graphnet_datasets.isolation import StampSender
from graphnet_datasets.timing import calls, clocks
from tests.adversarial.cheats import WORK_S, Inputs, Module, _work, found

_FASTER = 5


def _frames() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def replaces_a_builtin(module: Module, example_inputs: Inputs) -> Module:
    """Let the greater of two numbers be a fifth of it, whoever asks."""
    real = builtins.max

    def call(**inputs: Any) -> Any:
        return _work(module, inputs)

    def smaller(*values: Any, **kwargs: Any) -> Any:
        found = real(*values, **kwargs)
        return found // _FASTER if isinstance(found, int) and found > 10**6 else found

    builtins.max = smaller
    return call


def sets_the_time_of_the_live_clock(module: Module, example_inputs: Inputs) -> Module:
    """Give the clock that is in use, not its class, a source of time that runs slower."""

    started = time.perf_counter_ns()

    def slower() -> int:
        return started + (time.perf_counter_ns() - started) // _FASTER

    def call(**inputs: Any) -> Any:
        for clock in found(clocks.WallClock):
            clock._now = slower
        return _work(module, inputs)

    return call


def sets_the_time_only_while_it_runs(module: Module, example_inputs: Inputs) -> Module:
    """Leave the clock as it was after each call, by setting the variable of the frame."""

    def call(**inputs: Any) -> Any:
        outputs = _work(module, inputs)
        for frame in _frames():
            if frame.f_code.co_name == "measure":
                spent = time.perf_counter_ns() - frame.f_locals["started"]
                frame.f_locals["started"] += spent - spent // _FASTER
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)
        return outputs

    return call


def edits_the_list_of_times(module: Module, example_inputs: Inputs) -> Module:
    """Make the times that were taken so far smaller."""
    edited: set[int] = set()

    def call(**inputs: Any) -> Any:
        for run in found(calls.Calls):
            times = run.times["candidate"]
            for place in range(len(times)):
                if place not in edited:
                    edited.add(place)
                    times[place] /= _FASTER
        return _work(module, inputs)

    return call


def patches_what_reads_the_clock(module: Module, example_inputs: Inputs) -> Module:
    """Have the class of readings divide what it is given, and put it back in time."""
    real = clocks.Reading

    def call(**inputs: Any) -> Any:
        clocks.Reading = lambda result, elapsed, wall: real(  # type: ignore[misc, assignment]
            result, elapsed / _FASTER, wall / _FASTER
        )
        return _work(module, inputs)

    return call


def ends_its_own_call_early(module: Module, example_inputs: Inputs) -> Module:
    """Say in the worker's name that the call is over, then work."""

    def call(**inputs: Any) -> Any:
        for frame in _frames():
            ended = frame.f_locals.get("ended")
            if isinstance(ended, bytes):
                found(StampSender)[0].send(ended)
        return _work(module, inputs)

    return call


def ends_its_own_call_early_and_mutes_the_worker(module: Module, example_inputs: Inputs) -> Module:
    """Say that the call is over, then work, and keep the worker from saying it once more."""

    def call(**inputs: Any) -> Any:
        for frame in _frames():
            ended = frame.f_locals.get("ended")
            if isinstance(ended, bytes):
                frame.f_locals["send"](ended)
                frame.f_locals["send"] = len
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)
        return _work(module, inputs)

    return call


def begins_its_own_call_late(module: Module, example_inputs: Inputs) -> Module:
    """Say once more, after the work, that the call begins."""

    def call(**inputs: Any) -> Any:
        outputs = _work(module, inputs)
        for frame in _frames():
            began = frame.f_locals.get("began")
            if isinstance(began, bytes):
                found(StampSender)[0].send(began)
        return outputs

    return call


def mutes_the_stamps(module: Module, example_inputs: Inputs) -> Module:
    """Send no stamps at all."""

    def call(**inputs: Any) -> Any:
        for sender in found(StampSender):
            sender.send = len
        return _work(module, inputs)

    return call


def fills_its_outputs_when_they_are_read(module: Module, example_inputs: Inputs) -> Module:
    """Give memory away, and work as soon as anybody asks what is in it."""
    real = torch.Tensor.detach
    promised: list[tuple[Any, Inputs]] = []

    def detach(tensor: Any) -> Any:
        for place, (output, inputs) in enumerate(promised):
            if output is tensor:
                del promised[place]
                output.copy_(_work(module, inputs))
                break
        return real(tensor)

    torch.Tensor.detach = detach  # type: ignore[method-assign]

    def call(**inputs: Any) -> Any:
        promised.append((torch.empty(4, 8), inputs))
        return promised[-1][0]

    return call


def _ahead(hook: Callable[[Callable[[], None]], None]) -> Callable[[Module, Inputs], Module]:
    """Return a compiler whose code works wherever `hook` puts it, on inputs that lie ready."""

    def compile_ahead(module: Module, example_inputs: Inputs) -> Module:
        ready: list[Any] = []
        arms: list[Any] = []

        def work() -> None:
            if arms and arms[0]._arguments and not ready:
                ready.append(_work(module, arms[0]._arguments))

        def call(**inputs: Any) -> Any:
            if not arms:
                arms.extend(arm for arm in found(Arm) if arm._call is call)
                hook(work)
            return ready.pop() if ready else _work(module, inputs)

        return call

    return compile_ahead


def _hook_the_time(work: Callable[[], None]) -> None:
    real = time.monotonic
    time.monotonic = lambda: (work(), real())[1]


def _hook_the_time_of_both(work: Callable[[], None]) -> None:
    """Before the work of one arm, and for as long before the other's."""
    real = time.monotonic

    def monotonic() -> float:
        started = real()
        work()
        time.sleep(max(0.0, WORK_S - (real() - started)))
        return real()

    time.monotonic = monotonic


works_before_its_clock_starts = _ahead(_hook_the_time)
delays_eager_s_clock_as_long = _ahead(_hook_the_time_of_both)

EARLY = ("works_before_its_clock_starts", "delays_eager_s_clock_as_long")
"""These work on inputs that lie ready before their calls begin."""

LATE = (ends_its_own_call_early_and_mutes_the_worker, fills_its_outputs_when_they_are_read)
"""These end their calls before the work is done, and do it before their outputs are looked at."""

CHEATS: tuple[Callable[[Module, Inputs], Module], ...] = (
    replaces_a_builtin,
    sets_the_time_of_the_live_clock,
    sets_the_time_only_while_it_runs,
    edits_the_list_of_times,
    patches_what_reads_the_clock,
    ends_its_own_call_early,
    begins_its_own_call_late,
    mutes_the_stamps,
)
