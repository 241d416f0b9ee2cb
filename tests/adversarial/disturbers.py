"""Candidates beside which eager is slow, and which are themselves as slow as eager."""

# ruff: noqa: ARG001 (every candidate has the same arguments, used or not)

from __future__ import annotations

import gc
import threading
import time
import warnings
from typing import Any

import torch

from tests.adversarial.cheats import Inputs, Module

SLOWER_S = 0.02
_libraries: list[Any] = []
"""What is registered goes when its library does."""


def _slow_eager(module: Any, is_slow: Any) -> Module:
    """Register a kernel that waits, now and then, under an operator that eager calls."""
    is_ours = False

    def relu(value: torch.Tensor) -> torch.Tensor:
        if not is_ours and is_slow():
            time.sleep(SLOWER_S)
        return value.clamp_min(0)

    _libraries.append(torch.library.Library("aten", "IMPL"))
    with warnings.catch_warnings(action="ignore"):
        _libraries[-1].impl("relu", relu, "CPU")

    def call(**inputs: Any) -> Any:
        nonlocal is_ours
        is_ours = True
        outputs = module(**inputs)
        is_ours = False
        return outputs

    return call


def _every(share: float) -> Any:
    state = {"calls": 0}

    def is_slow() -> bool:
        state["calls"] += 1
        return int(state["calls"] * share) > int((state["calls"] - 1) * share)

    return is_slow


def hooks_every_call(module: Any, example_inputs: Inputs) -> Module:
    return _slow_eager(module, _every(1.0))


def hooks_three_calls_of_four(module: Any, example_inputs: Inputs) -> Module:
    return _slow_eager(module, _every(0.75))


def hooks_half_of_the_calls(module: Any, example_inputs: Inputs) -> Module:
    return _slow_eager(module, _every(0.5))


def takes_the_interpreter(module: Any, example_inputs: Inputs) -> Module:
    """Have a thread hold the interpreter's lock while the candidate is not being called."""
    is_resting = threading.Event()

    def burn() -> None:
        while True:
            if is_resting.is_set():
                sum(range(10_000))
            else:
                time.sleep(0.001)

    threading.Thread(target=burn, daemon=True).start()

    def call(**inputs: Any) -> Any:
        is_resting.clear()
        outputs = module(**inputs)
        is_resting.set()
        return outputs

    return call


def finds_eager_and_wraps_it(module: Any, example_inputs: Inputs) -> Module:
    """Find eager's module among all objects and replace its code."""

    def call(**inputs: Any) -> Any:
        for found in gc.get_objects():
            if isinstance(found, torch.fx.GraphModule) and found is not module:
                real = type(found).forward
                if not hasattr(real, "is_slow"):

                    def forward(self: Any, *args: Any, real: Any = real, **kwargs: Any) -> Any:
                        time.sleep(SLOWER_S)
                        return real(self, *args, **kwargs)

                    forward.is_slow = True  # type: ignore[attr-defined]
                    type(found).forward = forward  # type: ignore[method-assign]
        return module(**inputs)

    return call
