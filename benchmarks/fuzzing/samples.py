"""A call as a sample of one operator, whose numbers and single elements are stored in it."""

from __future__ import annotations

import random
from typing import Any

from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from .elements import elements
from .specs import Call, Tensor
from .specs import Named as Constant


def sample_of(call: Call, chance: random.Random, framework: Any) -> Sample:
    """Return a sample that makes the call; GraphNetError: no row could hold it."""
    inputs: list[Input] = []

    def argument(value: Any) -> Any:
        if isinstance(value, Tensor):
            inputs.append(_input(value, chance))
            return Ref(len(inputs) - 1)
        if isinstance(value, Constant):
            return Named(value.kind, value.name)  # type: ignore[arg-type]
        if isinstance(value, list):
            return ListArg(tuple(map(argument, value)))
        return tuple(map(argument, value)) if isinstance(value, tuple) else value

    args = tuple(map(argument, call.args))
    kwargs = tuple((key, argument(value)) for key, value in call.kwargs.items())
    op = Op(call.name, args, kwargs)
    return Sample("fuzzed/walk", framework, "other", tuple(inputs), (op,), Ref(len(inputs)))


def _input(spec: Tensor, chance: random.Random) -> Input:
    value = Value(spec.dtype, spec.shape)  # type: ignore[arg-type]
    if len(spec.shape) or spec.dtype == "bfloat16":
        return Input("input", value)
    return Input("constant", value, data=elements(spec, chance).tobytes())
