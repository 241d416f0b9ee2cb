"""Numeric arguments of a graph's operators, such as the stride of a convolution."""

from __future__ import annotations

from typing import Any

from ..sample import Sample
from ..sample.arguments import ListArg


def attributes_of(sample: Sample) -> dict[str, Any]:
    """Return the arguments that are numbers, or sequences of numbers, by name.

    Argument 3 of operator 0 is `op0_arg3`, and the argument `dim` of operator 1 is `op1_dim`.
    Sequences are returned as tuples. Booleans, sizes that are symbols, and nested structures are
    not numbers.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/softmax", "torch", "other",
    ...     (Input("input", Value("float32", (4, 2))),),
    ...     (Op("torch.mul", (Ref(0), 0.5)), Op("torch.softmax", (Ref(1),), (("dim", -1),))),
    ...     Ref(2))
    >>> attributes_of(sample)
    {'op0_arg1': 0.5, 'op1_dim': -1}
    """
    attributes: dict[str, Any] = {}
    for position, op in enumerate(sample.ops):
        arguments = [(f"arg{place}", argument) for place, argument in enumerate(op.args)]
        for name, argument in (*arguments, *op.kwargs):
            value = as_numbers(argument)
            if value is not None:
                attributes[f"op{position}_{name}"] = value
    return attributes


def as_numbers(argument: Any) -> Any:
    """Return a number, or a sequence of numbers as a tuple; None for other arguments.

    >>> as_numbers(3), as_numbers(ListArg((1, 2))), as_numbers(True), as_numbers(())
    (3, (1, 2), None, None)
    """
    if type(argument) in (int, float):
        return argument
    items = argument.items if isinstance(argument, ListArg) else argument
    if not isinstance(items, tuple) or not items:
        return None
    return items if all(type(item) in (int, float) for item in items) else None
