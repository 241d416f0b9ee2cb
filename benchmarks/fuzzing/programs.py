"""Programs of one to four operators, as samples that take the way of any row: checked, then run.

Each operator after the first takes a result of an earlier one as an operand, so that views,
expanded tensors and results of other kernels reach it as well. Inputs have the smallest storages
that their strides allow.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Op, Sample
from graphnet_datasets.sample.arguments import ListArg, Ref

from .samples import input_of, literal_of
from .specs import Call, Tensor

MAX_OPERATORS = 4
LIMIT_BYTES = 250_000_000
"""Memory limit of a program; its process may take a fifth more (`processes.MAX_DATA_BYTES`)."""

VIEWS = {
    "torch": (
        "torch.Tensor.expand", "torch.Tensor.transpose", "torch.Tensor.unfold", "torch.Tensor.t",
        "torch.Tensor.narrow", "torch.Tensor.select", "torch.Tensor.unsqueeze", "torch.flip",
        "torch.as_strided", "torch.Tensor.diagonal", "operator.getitem", "torch.Tensor.permute",
    ),
    "paddle": (
        "paddle._C_ops.expand", "paddle._C_ops.transpose", "paddle._C_ops.slice",
        "paddle._C_ops.unsqueeze", "paddle._C_ops.flip", "paddle._C_ops.tensor_unfold",
    ),
}  # fmt: skip
"""Operators that change how their operand lies in memory."""


def attempt(
    framework: str,
    mutated: Callable[[str, random.Random], Call],
    names: Callable[[], Sequence[str]],
    name: str,
    seed: str,
) -> tuple[list[Call], Callable[[], bool]]:
    """Return the calls of a program that ends with `name`, and what runs it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    views = [view for view in VIEWS[framework] if view in names()]
    calls = []
    for _ in range(chance.randrange(MAX_OPERATORS)):
        is_view = views and chance.random() < 0.6
        calls.append(mutated(chance.choice(views if is_view else list(names())), chance))
    calls.append(mutated(name, chance))
    return calls, functools.partial(_run, framework, calls, chance)


def program_of(framework: Any, calls: Sequence[Call], chance: random.Random) -> Sample:
    """Return the sample of a program; GraphNetError: no row could hold it."""
    inputs: list[Any] = []
    pending: list[tuple[Call, int | None]] = []
    for position, call in enumerate(calls):
        pending.append((call, chance.randrange(position) if position else None))

    def count(value: Any) -> None:
        if isinstance(value, Tensor):
            inputs.append(input_of(value, chance))
        elif isinstance(value, list | tuple):
            for item in value:
                count(item)

    skipped: list[bool] = []
    for call, earlier in pending:
        first = next((arg for arg in call.args if isinstance(arg, Tensor)), None)
        skipped.append(earlier is not None and first is not None)
        for arg in call.args:
            if not (skipped[-1] and arg is first):
                count(arg)
        for arg in call.kwargs.values():
            count(arg)
    used = iter(range(len(inputs)))
    ops = []
    for (call, earlier), is_skipped in zip(pending, skipped, strict=True):
        first = next((arg for arg in call.args if isinstance(arg, Tensor)), None)

        def argument(value: Any, chained: Any, result: int) -> Any:
            if value is chained:
                return Ref(result)
            if isinstance(value, Tensor):
                return Ref(next(used))
            if isinstance(value, list):
                return ListArg(tuple(argument(item, chained, result) for item in value))
            if isinstance(value, tuple):
                return tuple(argument(item, chained, result) for item in value)
            return literal_of(value)

        chained = first if is_skipped else call
        result = len(inputs) + (earlier or 0)
        args = tuple(argument(arg, chained, result) for arg in call.args)
        kwargs = tuple((key, argument(arg, call, result)) for key, arg in call.kwargs.items())
        ops.append(Op(call.name, args, kwargs))
    outputs = tuple(Ref(len(inputs) + at) for at in range(len(ops)))
    return Sample("fuzzed/program", framework, "other", tuple(inputs), tuple(ops), outputs)


def _run(framework: str, calls: Sequence[Call], chance: random.Random) -> bool:
    calls = [dataclasses.replace(call) for call in calls]
    try:
        sample = program_of(framework, calls, chance)
        module = materialize(sample, memory_limit_bytes=LIMIT_BYTES)
        inputs = make_inputs(sample, memory_limit_bytes=LIMIT_BYTES)
    except GraphNetError:
        return False
    module(**inputs)
    return True


def is_checked(_name: str) -> bool:
    """Tell whether a death counts: `materialize` has taken the program unasked."""
    return True
