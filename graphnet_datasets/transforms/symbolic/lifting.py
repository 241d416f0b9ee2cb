"""Literals and symbols of a graph as arguments that change from call to call."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ...sample import Input, Op, Sample, Value
from ...sample.arguments import Ref, map_refs
from ...sample.targets import base_name

Place: TypeAlias = tuple[int, int | str]
"""An operator by position, and its argument by position or keyword."""

_WHOLE_NUMBERS = frozenset(
    {
        *("add", "sub", "rsub", "mul", "div", "truediv", "true_divide", "pow", "remainder", "fmod"),
        *("clamp", "clamp_min", "clamp_max", "clip", "maximum", "minimum", "hardtanh"),
        *("eq", "ne", "lt", "le", "gt", "ge", "masked_fill", "threshold", "leaky_relu"),
    }
)
"""Operators whose integer literals are operands, not sizes, axes or indices."""
_UNSEEN = frozenset({"eps", "epsilon", "momentum", "p", "dropout_p"})
"""Keywords whose value hardly shows in the outputs, or decides how often elements are dropped."""


def find_literals(sample: Sample) -> dict[float | int, tuple[Place, ...]]:
    """Return the places of each literal number that a graph computes with, by value and type.

    Floats count wherever they are an argument of their own. Integers count as operands of
    arithmetic on floats, where the capture recorded a float result.

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
    # A float and an integer of one value are one key of a dictionary: the float is kept.
    ordered = sorted(places.items(), key=lambda item: item[0][0] is float)
    return {value: tuple(where) for (_, value), where in ordered}


def lift_literals(sample: Sample, literals: Mapping[float | int, Sequence[Place]]) -> Sample:
    """Return the graph with an input of the role `scalar` for each literal, behind the others.

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
    """Return the graph with one more scalar input for each use of these scalar inputs.

    Uses are arguments of operators. The second result maps the name of each new input to the name
    of the input that it replaces in one place.

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
    """Return the graph with `size` of a tensor input in the place of each symbol that is an input.

    A model reads its sizes so, and compilers that take tensors only can follow them. A symbol that
    is no dimension of a data input stays an input. Graphs of other frameworks than torch are
    returned as they are.

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
    """Return the graph with more inputs behind its own, and references to them in these places.

    Place `i` refers to added input `i`, unless `number_of` holds another number for it.
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
