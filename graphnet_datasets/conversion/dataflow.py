"""Data flow graphs of samples: a node per input, operator and output, and an edge per use."""

from __future__ import annotations

import json
import math
from typing import Any

from ..sample import Sample, Value
from ..sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg, iterate_refs

OUTPUT = "output"
"""The kind, target and name of the node of the outputs."""


def make_nodes(sample: Sample) -> list[dict[str, Any]]:
    """Return the nodes in topological order: the inputs, the operators, then one for the outputs.

    `kind` is the role of an input, "operator" or "output", and `target` the operator. `dtype` and
    `shape` are those of the first result, with the sizes of the capture; they are None if they are
    unknown. `args` and `kwargs` are JSON in which `{"ref": n}` is the value of node n.

    >>> from graphnet_datasets.sample import Input, Op
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (2, 3))),),
    ...     (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> [(node["kind"], node["target"]) for node in make_nodes(relu)]
    [('input', 'input_0'), ('operator', 'torch.relu'), ('output', 'output')]
    """
    nodes = [
        {"kind": item.role, "target": name, "args": "[]", "kwargs": "{}"}
        | _describe(sample, item.value)
        for name, item in zip(sample.input_names, sample.inputs, strict=True)
    ]
    for op in sample.ops:
        kwargs = {name: _plain(value) for name, value in op.kwargs}
        nodes.append(
            {
                "kind": "operator",
                "target": op.target,
                "args": json.dumps([_plain(argument) for argument in op.args]),
                "kwargs": json.dumps(kwargs),
            }
            | _describe(sample, op.results[0] if op.results else None)
        )
    outputs = {"kind": OUTPUT, "target": OUTPUT, "args": json.dumps([_plain(sample.outputs)])}
    return [*nodes, outputs | {"kwargs": "{}", "dtype": None, "shape": None}]


def make_edges(sample: Sample) -> list[tuple[int, int, int]]:
    """Return an edge per use of a value: the node that makes it, the user, and the position.

    >>> from graphnet_datasets.sample import Input, Op
    >>> square = Sample("example/square", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.mul", (Ref(0), Ref(0))),), (Ref(1),))
    >>> make_edges(square)
    [(0, 1, 0), (0, 1, 1), (1, 2, 0)]
    """
    first = len(sample.inputs)
    users: list[Any] = [(op.args, DictArg(op.kwargs)) for op in sample.ops] + [sample.outputs]
    return [
        (source, first + number, position)
        for number, arguments in enumerate(users)
        for position, source in enumerate(iterate_refs(arguments))
    ]


def _plain(argument: Arg) -> Any:
    """Return a JSON-compatible argument; constants without a JSON form become strings."""
    match argument:
        case Ref(index):
            return {"ref": index}
        case tuple():
            return [_plain(item) for item in argument]
        case ListArg(items):
            return [_plain(item) for item in items]
        case DictArg(items):
            return {key: _plain(item) for key, item in items}
        case SliceArg(start, stop, step):
            return {"slice": [_plain(part) for part in (start, stop, step)]}
        case Named(kind, name):
            return {kind: name}
        case float() if not math.isfinite(argument):
            return str(argument)
        case None | bool() | int() | float() | str():
            return argument
    return str(argument)


def _describe(sample: Sample, value: Value | None) -> dict[str, Any]:
    if value is None:
        return {"dtype": None, "shape": None}
    shape = sample.shape_of(value)
    return {"dtype": value.dtype, "shape": None if shape is None else list(shape)}
