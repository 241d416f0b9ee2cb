"""Bodies of branches and loops in a walk: their inputs, iterations, results and memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....errors import MaterializeError
from ....sample import Input, Op, Sample, Value
from ....sample.arguments import Arg, Ref, iterate_leaves
from ..building.bodies import BodyCall
from ..operators import mutates
from .describing import describe
from .footprint import Footprint
from .forms import Storage
from .live_memory import storage_keys
from .unknown import Unknown


def body_input(arg: Arg, values: Sequence[Any]) -> Input:
    """Return the input that a body receives for an operand; its shape may be unknown.

    >>> body_input(3, ()).value
    Value(dtype='int64', shape=(), stride=None)
    """
    value = values[arg.index] if isinstance(arg, Ref) else arg
    dtype = {bool: "bool", int: "int64", float: "float64"}.get(type(value))
    if dtype is not None:
        return Input("scalar", Value(dtype, ()), data=np.array(value, dtype).tobytes())
    described = list(describe(value))
    return Input("input", described[0] if len(described) == 1 else Value())


def count_iterations(call: BodyCall, inputs: Sequence[Input]) -> int | None:
    """Return the number of iterations of a loop.

    Returns 1 if the number depends on data, and None if the shape of an input is unknown.

    Raises:
        MaterializeError: If the scanned tensors have no common length.
    """
    if any(item.value.dtype is None or item.value.shape is None for item in inputs):
        return None
    scanned = inputs[len(call.carried) :][: len(call.scanned)]
    if not scanned:
        return None if call.name == "scan" else 1
    lengths = {(item.value.shape or ())[:1] for item in scanned}
    length = lengths.pop()
    if lengths or not length or type(length[0]) is not int:
        raise MaterializeError("Expected tensors of one length to scan.")
    return length[0]


def iteration_inputs(call: BodyCall, inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Return the inputs of an iteration, which receives one element of each scanned tensor."""
    start = len(call.carried)
    stop = start + len(call.scanned)
    return (*inputs[:start], *map(_element_of, inputs[start:stop]), *inputs[stop:])


def _element_of(item: Input) -> Input:
    shape, stride = item.value.shape or (), item.value.stride
    return Input(
        "input", Value(item.value.dtype, shape[1:], None if stride is None else stride[1:])
    )


def output_values(body: Sample, footprint: Footprint) -> list[Value] | None:
    """Return the outputs of a walked body, or None unless all are tensors of known shape."""
    values: list[Value] = []
    num_inputs = len(body.inputs)
    for leaf in iterate_leaves(body.outputs):
        if not isinstance(leaf, Ref):
            return None
        if leaf.index < num_inputs:
            is_tensor = body.inputs[leaf.index].role == "input"
            of_leaf = (body.inputs[leaf.index].value,) if is_tensor else ()
        else:
            of_leaf = footprint.results[leaf.index - num_inputs] or ()
        if len(of_leaf) != 1 or of_leaf[0].shape is None or of_leaf[0].dtype is None:
            return None
        values += of_leaf
    return values


def join_outputs(
    call: BodyCall,
    inputs: Sequence[Input],
    outputs: Sequence[Sequence[Value] | None],
    num_iterations: int,
) -> list[Value] | None:
    """Return the results of a call whose bodies have the given outputs, without strides.

    Returns None if the results are unknown, differ between branches, or do not have the shapes of
    the carried values of a loop.
    """
    last = outputs[-1]
    if last is None or outputs[0] is None:
        return None
    results = _without_strides(last)
    if call.name == "cond":
        return results if results == _without_strides(outputs[0]) else None
    num_carried = len(call.carried)
    carried = inputs[:num_carried]
    if any(item.role != "input" for item in carried):
        return None
    if results[:num_carried] != _without_strides(item.value for item in carried):
        return None
    if call.name == "while_loop":
        return results if len(results) == num_carried else None
    stacked = [
        Value(value.dtype, (num_iterations, *(value.shape or ())))
        for value in results[num_carried:]
    ]
    return results[:num_carried] + stacked


def _without_strides(values: Iterable[Value]) -> list[Value]:
    return [Value(value.dtype, value.shape) for value in values]


class OperandMemory:
    """Memory of the operands of a body, which the body must not write to or return."""

    def __init__(self, operands: Sequence[Any], storages: Mapping[int, Storage]) -> None:
        self._storages = storages
        self._keys = frozenset(self._keys_of(operands))
        self._is_written = False

    def note(self, op: Op, operands: Sequence[Any]) -> None:
        """Record whether an operator of the body may write to the memory."""
        if not self._keys or not mutates(op):
            return
        if self._overlaps(operands) or any(isinstance(item, Unknown) for item in operands):
            self._is_written = True

    def why_unchecked(self, footprint: Footprint, outputs: Sequence[Any]) -> str:
        """Return why a walked body may not run in the caller's process, or ""."""
        if footprint.unchecked:
            return "has a body with an operator that is not checked"
        if footprint.unsettled:
            return "has a body with tensors whose sizes depend on elements"
        if self._is_written:
            return "has a body that writes to its operands"
        keys = self._keys_of(outputs)
        if self._overlaps(outputs) or len(set(keys)) < len(keys):
            return "has a body whose results share memory"
        return ""

    def _keys_of(self, values: Sequence[Any]) -> list[int]:
        return [key for value in values for key in storage_keys(value, self._storages)]

    def _overlaps(self, values: Sequence[Any]) -> bool:
        return not self._keys.isdisjoint(self._keys_of(values))
