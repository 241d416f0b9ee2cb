"""Candidates that steer the objects which lay out, choose and time their calls; named by reference.

Each finds them through the garbage collector in its first call and sets attributes of theirs, so
that its later calls have nothing to compute, or eager's have more.
"""

# ruff: noqa: ARG001 (every candidate has the same arguments, used or not)

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from graphnet_datasets.benchmark.child.arms import Arm, Workload
from graphnet_datasets.benchmark.child.timed_calls import TimedCalls
from graphnet_datasets.benchmark.handover import MAX_SET, JudgedCall
from graphnet_datasets.timing.calls import Calls
from tests.adversarial.cheats import Inputs, Module, found

SET = 1_000_003


def _remembering(steer: Callable[[], None]) -> Callable[[Module, Inputs], Module]:
    """Return a compiler whose code steers once and then replays what it gave for equal inputs."""

    def compile_remembering(module: Module, example_inputs: Inputs) -> Module:
        kept: dict[Any, torch.Tensor] = {}

        def call(**inputs: Any) -> Any:
            if not kept:
                steer()
            key = tuple(float(each.reshape(-1)[0]) for each in inputs.values())
            if key not in kept:
                kept[key] = module(**inputs)
            return kept[key].clone()

        return call

    return compile_remembering


def _draw_one_set() -> None:
    for each in found(TimedCalls):
        each._choose_set = lambda *_: SET


def _draw_of_few_sets() -> None:
    for each in found(TimedCalls):
        each._num_sets = MAX_SET - 8


def _choose_the_judged_calls() -> None:
    for each in found(TimedCalls):
        each._again.extend(JudgedCall(SET + index, 0, False) for index in range(1000))


def _become_another_class() -> None:
    for each in found(TimedCalls):
        each.__class__ = type("TimedCalls", (TimedCalls,), {"_choose_set": lambda *_: SET})


def _make_the_same_inputs() -> None:
    for each in found(Workload):
        each._make_inputs = lambda _, first=each.first: first


draws_one_set = _remembering(_draw_one_set)
draws_of_few_sets = _remembering(_draw_of_few_sets)
chooses_the_judged_calls = _remembering(_choose_the_judged_calls)
becomes_another_class = _remembering(_become_another_class)
makes_the_same_inputs = _remembering(_make_the_same_inputs)


def computes_while_inputs_are_laid_out(module: Module, example_inputs: Inputs) -> Module:
    ready: list[Any] = []

    def call(**inputs: Any) -> Any:
        for arm in found(Arm):
            if arm._call is call and "prepare" not in vars(arm):

                def prepare(index: int, arm: Any = arm, real: Any = arm.prepare) -> None:
                    real(index)
                    ready[:] = [module(**arm._arguments)]

                arm.prepare = prepare
        return ready.pop() if ready else module(**inputs)

    return call


def computes_before_the_clock_starts(module: Module, example_inputs: Inputs) -> Module:
    ready: list[Any] = []
    arms: list[Any] = []

    def call(**inputs: Any) -> Any:
        if not arms:
            arms.extend(each for each in found(Arm) if each._call is call)
            for calls in found(Calls):

                def before_each(arm: Any, pair: int, real: Any = calls._before_each) -> None:
                    real(arm, pair)
                    ready[:] = [module(**arms[0]._arguments)] if arm == "candidate" else []

                calls._before_each = before_each
        return ready.pop() if ready else module(**inputs)

    return call


def puts_back_what_it_steers(module: Module, example_inputs: Inputs) -> Module:
    """Hook the laying out of inputs from call to call, and never be seen with the hook between."""
    ready: list[Any] = []

    def call(**inputs: Any) -> Any:
        outputs = ready.pop() if ready else module(**inputs)
        for arm in found(Arm):
            if arm._call is call:

                def prepare(index: int, arm: Any = arm, real: Any = arm.prepare) -> None:
                    del arm.prepare
                    real(index)
                    ready[:] = [module(**arm._arguments)]

                arm.prepare = prepare
        return outputs

    return call


def slows_eager_s_arm(module: Module, example_inputs: Inputs) -> Module:
    slowed: list[Any] = []

    def call(**inputs: Any) -> Any:
        if not slowed:
            slowed.extend(each for each in found(Arm) if each._call is not call)
            for arm in slowed:

                def slow(real: Any = arm._call, **given: Any) -> Any:
                    time.sleep(0.001)
                    return real(**given)

                arm._call = slow
        return module(**inputs)

    return call


CHEATS = (
    "draws_one_set",
    "draws_of_few_sets",
    "chooses_the_judged_calls",
    "becomes_another_class",
    "makes_the_same_inputs",
    "computes_while_inputs_are_laid_out",
    "computes_before_the_clock_starts",
    "puts_back_what_it_steers",
    "slows_eager_s_arm",
)
