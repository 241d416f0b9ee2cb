"""Candidates beside which eager is slow, and which are themselves as slow as eager."""

# ruff: noqa: ARG001 (every candidate has the same arguments, used or not)

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import torch

from tests.adversarial.cheats import Inputs, Module

SLOWER_S = 0.02


def _slow_eager(module: Any, is_slow: Any) -> None:
    """Have eager's own module wait, now and then, by what every module of torch looks up."""
    ours = id(module)
    real = torch.nn.Module.__call__

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) != ours and isinstance(self, torch.fx.GraphModule) and is_slow():
            time.sleep(SLOWER_S)
        return real(self, *args, **kwargs)

    torch.nn.Module.__call__ = called  # type: ignore[method-assign]


def _every(share: float) -> Any:
    state = {"calls": 0}

    def is_slow() -> bool:
        state["calls"] += 1
        return int(state["calls"] * share) > int((state["calls"] - 1) * share)

    return is_slow


def hooks_every_call(module: Any, example_inputs: Inputs) -> Module:
    _slow_eager(module, _every(1.0))
    return lambda **inputs: module(**inputs)


def hooks_three_calls_of_four(module: Any, example_inputs: Inputs) -> Module:
    _slow_eager(module, _every(0.75))
    return lambda **inputs: module(**inputs)


def hooks_half_of_the_calls(module: Any, example_inputs: Inputs) -> Module:
    _slow_eager(module, _every(0.5))
    return lambda **inputs: module(**inputs)


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
