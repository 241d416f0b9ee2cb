"""What writing and inspecting a row of torch computes, under test: the walk over its shapes.

Each call becomes a sample of one operator, whose numbers and single elements are stored in it. All
operators are walked, checked or not: a row of an unchecked one is written and read all the same.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

from graphnet_datasets.analysis.columns import cost_columns
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.torch.shapes import measure_footprint
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from .elements import elements
from .specs import Call, Tensor
from .specs import Named as Constant
from .torch_target import mutated, names, set_up

__all__ = ["attempt", "is_checked", "names", "set_up"]
_LIMIT_BYTES = 10**9
_TIME_LIMIT_S = 2.0


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what walks a sample of it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    call = mutated(name, chance)
    return call, functools.partial(_walk, call, chance)


def _walk(call: Call, chance: random.Random) -> bool:
    inputs: list[Input] = []

    def argument(value: Any) -> Any:
        if isinstance(value, Tensor):
            inputs.append(_input(value, chance))
            return Ref(len(inputs) - 1)
        if isinstance(value, Constant):
            return Named(value.kind, value.name)
        if isinstance(value, list):
            return ListArg(tuple(map(argument, value)))
        return tuple(map(argument, value)) if isinstance(value, tuple) else value

    args = tuple(map(argument, call.args))
    kwargs = tuple((key, argument(value)) for key, value in call.kwargs.items())
    op = Op(call.name, args, kwargs)
    sample = Sample("fuzzed/walk", "torch", "other", tuple(inputs), (op,), Ref(len(inputs)))
    cost_columns(sample)
    try:
        footprint = measure_footprint(sample, None, _LIMIT_BYTES, time_limit_s=_TIME_LIMIT_S)
    except GraphNetError:
        return False
    return footprint.results[0] is not None


def _input(spec: Tensor, chance: random.Random) -> Input:
    value = Value(spec.dtype, spec.shape)  # type: ignore[arg-type]
    if len(spec.shape) or spec.dtype == "bfloat16":
        return Input("input", value)
    return Input("constant", value, data=elements(spec, chance).tobytes())


def is_checked(_name: str) -> bool:
    """Tell whether a death counts: every walk runs unasked."""
    return True
