"""Conversion of literals and symbols of a graph to inputs that can change between calls."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ...operators import OperatorNames
from ...sample import Input, Op, Sample, Value
from ...sample.arguments import Ref, map_refs
from ...sample.targets import base_name

Place: TypeAlias = tuple[int, int | str]
"""The position of an operator, and the position or keyword of its argument."""

_WHOLE_NUMBERS = OperatorNames("number_operands")
_UNSEEN = frozenset({"eps", "epsilon", "momentum", "p", "dropout_p"})
"""Keywords with little effect on outputs, or that set the probability of dropping elements."""


def find_literals(sample: Sample) -> dict[float | int, tuple[Place, ...]]:
    """Return the places of each literal number that a graph computes with, by value and type.

    Floats count if they are an argument. Integers count as operands of arithmetic with a recorded
    float result.

    >>> clamp = Op("torch.clamp", (Ref(0),), (("max", 6.0),))
    >>> whole = Sample("example/clamp", "torch", "other", (Input("input", Value("float32", (2,))),),
    ...     (clamp, Op("torch.mul", (Ref(1), 6.0))), Ref(2))
    >>> find_literals(whole)
    {6.0: ((0, 'max'), (1, 1))}
    """
    places: dict[tuple[type, float | int], list[Place]] = {}
    for position, op in enumerate(sample.ops):
        if not any(type(arg) is Ref for arg in op.args):
            continue
        takes_integers = _computes_floats(op) and base_name(op.target).rstrip("_") in _WHOLE_NUMBERS
        arguments: list[tuple[int | str, Any]] = [*enumerate(op.args), *op.kwargs]
        for name, value in arguments:
            if name in _UNSEEN or not (
                type(value) is float or (type(value) is int and takes_integers)
            ):
                continue
            places.setdefault((type(value), value), []).append((position, name))
    # A float and an equal integer are the same dictionary key: the float wins.
    ordered = sorted(places.items(), key=lambda item: item[0][0] is float)
    return {value: tuple(where) for (_, value), where in ordered}


def lift_literals(sample: Sample, literals: Mapping[float | int, Sequence[Place]]) -> Sample:
    """Return the graph with an input of role `scalar` for each literal, after its other inputs.

    >>> clamp = Op("torch.clamp", (Ref(0),), (("max", 6.0),))
    >>> whole = Sample("example/clamp", "torch", "other", (Input("input", Value("float32", (2,))),),
    ...     (clamp,), Ref(1))
    >>> lifted = lift_literals(whole, find_literals(whole))
    >>> lifted.input_names, lifted.ops[0].kwargs
    (('input_0', 'scalar_0'), (('max', Ref(index=1)),))
    """
    number_of = {
        place: number for number, places in enumerate(literals.values()) for place in places
    }
    return _with_inputs(sample, list(map(_scalar, literals)), list(number_of), number_of)


def split_uses(sample: Sample, names: Sequence[str]) -> tuple[Sample, dict[str, str]]:
    """Return the graph with a separate scalar input for each use of the given scalar inputs.

    Uses are arguments of operators. The second result maps each new input to the input it replaces
    at one place.

    >>> number = Input("scalar", Value("float64", ()), data=bytes(8))
    >>> whole = Sample("example/twice", "torch", "other",
    ...     (Input("input", Value("float32", (2,))), number),
    ...     (Op("torch.clamp", (Ref(0),), (("max", Ref(1)),)), Op("torch.mul", (Ref(2), Ref(1)))),
    ...     Ref(3))
    >>> split_uses(whole, ["scalar_0"])[1]
    {'scalar_1': 'scalar_0', 'scalar_2': 'scalar_0'}
    """
    wanted = {index: name for index, name in enumerate(sample.input_names) if name in names}
    uses: dict[Place, int] = {}
    for position, op in enumerate(sample.ops):
        arguments: list[tuple[int | str, Any]] = [*enumerate(op.args), *op.kwargs]
        for name, value in arguments:
            if type(value) is Ref and value.index in wanted:
                uses[position, name] = value.index
    split = _with_inputs(sample, [sample.inputs[index] for index in uses.values()], list(uses))
    new_names = split.input_names[len(sample.inputs) :]
    return split, dict(zip(new_names, (wanted[index] for index in uses.values()), strict=True))


def read_sizes_from_tensors(sample: Sample) -> Sample:
    """Replace symbols that are inputs by the `size` of a tensor input.

    Models read their sizes this way, and compilers that only accept tensors can follow it. A symbol
    that is not a dimension of a data input remains an input. Graphs of frameworks other than torch
    are returned unchanged.

    >>> from graphnet_datasets.sample import Symbol
    >>> whole = Sample("example/flat", "torch", "other",
    ...     (Input("input", Value("float32", ("batch", 4))),
    ...      Input("symbol", Value("int64", ()), source_name="batch")),
    ...     (Op("torch.Tensor.view", (Ref(0), Ref(1), 2, 2)),), Ref(2), (Symbol("batch", 3),))
    >>> [op.target for op in read_sizes_from_tensors(whole).ops]
    ['torch.Tensor.size', 'torch.Tensor.view']
    """
    if sample.framework != "torch":
        return sample
    dimensions: dict[object, tuple[int, int]] = {}
    for index, value in enumerate(sample.inputs):
        if value.role == "input":
            for dimension, size in enumerate(value.value.shape or ()):
                dimensions.setdefault(size, (index, dimension))
    read = {
        index: dimensions[value.source_name]
        for index, value in enumerate(sample.inputs)
        if value.role == "symbol" and value.source_name in dimensions
    }
    if not read:
        return sample
    remaining = [index for index in range(len(sample.inputs)) if index not in read]
    places = {index: number for number, index in enumerate(remaining)}
    places |= {index: len(remaining) + number for number, index in enumerate(read)}

    def renumber(index: int) -> Ref:
        return Ref(places.get(index, index))

    sizes = tuple(
        Op("torch.Tensor.size", (Ref(places[tensor]), dimension))
        for tensor, dimension in read.values()
    )
    ops = tuple(
        dataclasses.replace(
            op, args=map_refs(op.args, renumber), kwargs=map_refs(op.kwargs, renumber)
        )
        for op in sample.ops
    )
    return dataclasses.replace(
        sample,
        inputs=tuple(sample.inputs[index] for index in remaining),
        ops=(*sizes, *ops),
        outputs=map_refs(sample.outputs, renumber),
    )


def _computes_floats(op: Op) -> bool:
    return any(
        value.dtype is not None and "float" in value.dtype and value.shape is not None
        for value in op.results or ()
    )


def _scalar(number: float) -> Input:
    if type(number) is int:
        return Input("scalar", Value("int64", ()), data=struct.pack("<q", number))
    return Input("scalar", Value("float64", ()), data=struct.pack("<d", number))


def _with_inputs(
    sample: Sample,
    added: Sequence[Input],
    places: Sequence[Place],
    number_of: Mapping[Place, int] | None = None,
) -> Sample:
    """Return the graph with additional inputs, and references to them at the given places.

    Place `i` refers to added input `i`, unless `number_of` maps it to another number.
    """
    num_inputs, num_added = len(sample.inputs), len(added)
    if number_of is None:
        number_of = {place: number for number, place in enumerate(places)}
    refs = {place: Ref(num_inputs + number_of[place]) for place in places}

    def renumber(index: int) -> Ref:
        return Ref(index if index < num_inputs else index + num_added)

    ops = tuple(
        dataclasses.replace(
            op,
            args=tuple(
                refs.get((position, index), map_refs(arg, renumber))
                for index, arg in enumerate(op.args)
            ),
            kwargs=tuple(
                (name, refs.get((position, name), map_refs(arg, renumber)))
                for name, arg in op.kwargs
            ),
        )
        for position, op in enumerate(sample.ops)
    )
    return dataclasses.replace(
        sample,
        inputs=(*sample.inputs, *added),
        ops=ops,
        outputs=map_refs(sample.outputs, renumber),
    )
