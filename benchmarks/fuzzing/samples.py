"""A call as a sample of one operator, whose numbers and single elements are stored in it."""

from __future__ import annotations

import math
import random
from typing import Any

from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from graphnet_datasets.schema import sample_to_row

from .elements import elements
from .layouts import SMALLEST, strides_of
from .specs import Call, Tensor
from .specs import Named as Constant

STORED_ELEMENTS = 64
"""Elements of integers that are stored with a sample, so that indices are those of the call."""


def sample_of(call: Call, chance: random.Random, framework: Any) -> Sample:
    """Return a sample that makes the call; GraphNetError: no row could hold it."""
    inputs: list[Input] = []

    def argument(value: Any) -> Any:
        if isinstance(value, Tensor):
            inputs.append(input_of(value, chance))
            return Ref(len(inputs) - 1)
        if isinstance(value, list):
            return ListArg(tuple(map(argument, value)))
        return tuple(map(argument, value)) if isinstance(value, tuple) else literal_of(value)

    args = tuple(map(argument, call.args))
    kwargs = tuple((key, argument(value)) for key, value in call.kwargs.items())
    op = Op(call.name, args, kwargs)
    return Sample("fuzzed/walk", framework, "other", tuple(inputs), (op,), Ref(len(inputs)))


def literal_of(value: Any) -> Any:
    """Return an argument that is no tensor as a row holds it."""
    return Named(value.kind, value.name) if isinstance(value, Constant) else value


def row_of(sample: Sample) -> dict[str, Any]:
    """Return the columns of a sample's row that say what it computes."""
    row = sample_to_row(sample)
    columns = {name: row[name] for name in ("inputs", "ops", "outputs")}
    for column in (columns["inputs"], columns["ops"]):
        for item in column:
            empty = [name for name, value in item.items() if value in (None, "", [])]
            for name in set(empty) - {"shape", "stride"} | {
                name for name in ("shape", "stride") if item.get(name, 0) is None
            }:
                del item[name]
            if isinstance(item.get("data"), bytes):
                item["data"] = item["data"].hex()
    return columns


def input_of(spec: Tensor, chance: random.Random) -> Input:
    """Return the input that a tensor of a call becomes, with its strides."""
    stride = strides_of(spec.shape, spec.layout, chance) if spec.layout in SMALLEST else None
    value = Value(spec.dtype, spec.shape, stride)  # type: ignore[arg-type]
    is_stored = "int" in spec.dtype and math.prod(spec.shape) <= STORED_ELEMENTS
    if spec.dtype == "bfloat16" or stride is not None or (spec.shape and not is_stored):
        return Input("input", value)
    return Input("constant", value, data=elements(spec, chance).tobytes())
