"""Candidates that fail, each in a way of its own, and some that cheat; named by reference."""

# ruff: noqa: ARG001, ARG005 (every candidate has the same arguments, used or not)

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

Inputs = Mapping[str, Any]
Module = Callable[..., Any]


class UnpicklableError(Exception):
    """An error that can be neither pickled nor printed."""

    def __init__(self) -> None:
        self.handle = open(os.devnull)  # noqa: SIM115, PTH123

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _faulty(fault: Callable[[], Any]) -> Callable[[Module, Inputs], Module]:
    """Return a compiler whose compiled code does `fault` when it is called."""

    def compile_faulty(module: Module, example_inputs: Inputs) -> Module:
        def call(**inputs: Any) -> Any:
            return fault()

        return call

    return compile_faulty


def _changed(change: Callable[[Any], Any]) -> Callable[[Module, Inputs], Module]:
    """Return a compiler whose compiled code changes what eager returns."""

    def compile_changed(module: Module, example_inputs: Inputs) -> Module:
        return lambda **inputs: change(module(**inputs))

    return compile_changed


def _raise(error: BaseException) -> None:
    raise error


def _segfault() -> None:
    ctypes.string_at(0)


def _sleep() -> None:
    time.sleep(1000)


def _allocate() -> Any:
    return torch.ones(2**31)


def _print_much() -> None:
    block = "x" * 2**20
    for _ in range(1024):
        sys.stdout.write(block)


def _fork_away() -> None:
    """Leave a process behind that has left its session and its parent."""
    path = Path(os.environ["TEST_ORPHAN_FILE"])
    if path.exists():
        return
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            path.write_text(str(os.getpid()))
            time.sleep(1000)
        os._exit(0)
    while not (path.exists() and path.read_text()):
        time.sleep(0.005)


# compilation that fails


def compile_raises(module: Module, example_inputs: Inputs) -> Module:
    raise RuntimeError("Error: eager failed, status: success")


def compile_segfaults(module: Module, example_inputs: Inputs) -> Module:
    _segfault()
    return module


def compile_hangs(module: Module, example_inputs: Inputs) -> Module:
    _sleep()
    return module


def compile_allocates(module: Module, example_inputs: Inputs) -> Module:
    _allocate()
    return module


def compile_exits(module: Module, example_inputs: Inputs) -> Module:
    os._exit(0)


def compile_kills_server(module: Module, example_inputs: Inputs) -> Module:
    os.kill(os.getppid(), 9)
    _sleep()
    return module


def compile_raises_unpicklable(module: Module, example_inputs: Inputs) -> Module:
    raise UnpicklableError


# compiled code that fails

run_raises = _faulty(lambda: _raise(ValueError("no kernel")))
run_segfaults = _faulty(_segfault)
run_hangs = _faulty(_sleep)
run_allocates = _faulty(_allocate)
run_exits = _faulty(lambda: os._exit(0))
run_leaves = _faulty(lambda: sys.exit(0))


def run_raises_later(module: Module, example_inputs: Inputs) -> Module:
    """Work well at first, as code that fails on the second set of inputs does."""
    calls = iter(range(10**9))

    def call(**inputs: Any) -> Any:
        if next(calls) == 4:
            raise ValueError("the fifth call")
        return module(**inputs)

    return call


# wrong outputs

wrong_shape = _changed(lambda output: output[:1])
broadcastable_shape = _changed(lambda output: output[None])
wrong_dtype = _changed(lambda output: output.double())
wrong_count = _changed(lambda output: (output, output))
no_outputs = _changed(lambda output: ())
not_a_tensor = _changed(lambda output: output.tolist()[0][0].__repr__())
nan = _changed(lambda output: output * float("nan"))
slightly_off = _changed(lambda output: output * (1 + 1e-4))
prints_much = _changed(lambda output: (_print_much(), output)[1])
forks_away = _changed(lambda output: (_fork_away(), output)[1])


class LazyTensor(torch.Tensor):
    """A tensor that could put its work off until it is looked at."""


lazy = _changed(lambda output: output.as_subclass(LazyTensor))


def later_calls_wrong(module: Module, example_inputs: Inputs) -> Module:
    """Be right once, then skip the work."""
    kept: list[Any] = []

    def call(**inputs: Any) -> Any:
        if not kept:
            kept.append(module(**inputs))
        return kept[0].clone()

    return call


def writes_to_inputs(module: Module, example_inputs: Inputs) -> Module:
    def call(**inputs: Any) -> Any:
        output = module(**inputs)
        next(iter(inputs.values())).zero_()
        return output

    return call


def writes_to_weights(module: Any, example_inputs: Inputs) -> Module:
    def call(**inputs: Any) -> Any:
        output = module(**inputs)
        for tensor in (*module.parameters(), *module.buffers()):
            tensor.data.mul_(2)
        return output

    return call


def takes_memory(module: Module, example_inputs: Inputs) -> Module:
    """64 MiB for as long as a call takes."""

    def call(**inputs: Any) -> Any:
        held = torch.ones(2**24)
        return module(**inputs) if held[-1] == 1 else None

    return call


def uninitialised(module: Module, example_inputs: Inputs) -> Module:
    """Return memory in which eager's outputs may still lie."""
    like = module(**example_inputs)
    return lambda **inputs: torch.empty_like(like)


# cheating


def patches_clocks(module: Module, example_inputs: Inputs) -> Module:
    """Replace every clock that it can reach by name by one that hardly moves."""
    start = time.perf_counter_ns()
    slow = iter(range(start, start + 10**12))

    def call(**inputs: Any) -> Any:
        time.sleep(0.002)
        return module(**inputs)

    time.perf_counter_ns = lambda: next(slow)
    time.perf_counter = lambda: next(slow) / 1e9
    time.monotonic = lambda: 0.0
    time.time = lambda: 0.0
    return call


def reads_expected_outputs(module: Module, example_inputs: Inputs) -> Module:
    """Search this job's directory, and memory, for outputs that somebody else computed."""
    like = torch.zeros(4, 8)

    def call(**inputs: Any) -> Any:
        del inputs
        for path in Path.cwd().parent.rglob("*.bin"):
            data = path.read_bytes()
            if len(data) == like.numel() * 4:
                return torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(4, 8)
        for found in gc.get_objects():
            if type(found) is torch.Tensor and found.shape == like.shape:
                return found.clone()
        return like

    return call


# stopped runs


def takes_a_while(module: Module, example_inputs: Inputs) -> Module:
    """Compile for long enough that a run can be stopped in the middle of it."""
    time.sleep(2.0)
    return module


def takes_half_a_second(module: Module, example_inputs: Inputs) -> Module:
    """Compile for just so long that a run can be stopped in the middle of it."""
    time.sleep(0.5)
    return module


def refusing_huge_pages(module: Module, example_inputs: Inputs) -> Module:
    """Raise where huge pages were asked for any memory of the process."""
    if any(
        "hg" in line.split()
        for line in Path("/proc/self/smaps").read_text().splitlines()
        if line.startswith("VmFlags:")
    ):
        raise MemoryError("huge pages were asked for")
    return module
