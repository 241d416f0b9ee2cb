"""Reassembly of a graph from its parts."""

from __future__ import annotations

import dataclasses
import graphlib
from collections.abc import Iterator, Sequence

from ..errors import SampleError, TransformError, raises_only
from ..frameworks import find_regions
from ..sample import Op, Sample
from ..sample.arguments import Ref, map_refs
from .cut import Part
from .dependences import find_dependences


@raises_only(TransformError)
def recompose(whole: Sample, parts: Sequence[Part]) -> Sample:
    """Reassemble a graph from parts that contain all of its operators.

    An operator that opens or closes a region may be in several parts. The outputs are bitwise equal
    to those of the whole graph; numbers written into the parts remain literals.

    Raises:
        SampleError: an operator is in no part or in several, or the parts depend on each other.

    >>> from graphnet_datasets.sample import Input, Value
    >>> from graphnet_datasets.transforms import Cutter
    >>> chain = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.exp", (Ref(1),))), Ref(2))
    >>> cutter = Cutter(chain)
    >>> recompose(chain, [cutter.cut([1]), cutter.cut([0])]) == chain
    True
    """
    num_inputs = len(whole.inputs)
    places = {value: value for value in range(num_inputs)}
    ops: list[Op] = []
    for part in in_order(whole, parts):
        first = len(part.takes)
        op_values = range(num_inputs + len(ops), num_inputs + len(ops) + len(part.ops))
        part_values = [*(places[value] for value in part.takes), *op_values]

        def renumber(ref: int, part_values: Sequence[int] = part_values) -> Ref:
            return Ref(part_values[ref])

        for position, place in zip(part.ops, part_values[first:], strict=True):
            places.setdefault(num_inputs + position, place)
        ops += (
            dataclasses.replace(
                op, args=map_refs(op.args, renumber), kwargs=map_refs(op.kwargs, renumber)
            )
            for op in part.sample.ops
        )
    return dataclasses.replace(
        whole, ops=tuple(ops), outputs=map_refs(whole.outputs, lambda ref: Ref(places[ref]))
    )


def in_order(whole: Sample, parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts in dependence order.

    Raises:
        SampleError: an operator is in no part or in several, or the parts depend on each other.
    """
    dependences = find_dependences(whole)
    switches = {end for region in find_regions(whole) for end in (region.opens, region.closes)}
    home: dict[int, int] = {}
    for index, part in enumerate(parts):
        for position in part.ops:
            if home.setdefault(position, index) != index and position not in switches:
                raise SampleError(
                    f"Operator {position} of `{whole.id}` is in two of the parts, "
                    f"`{parts[home[position]].sample.id}` and `{part.sample.id}`."
                )
    missing = [position for position in range(whole.num_ops) if position not in home]
    if missing:
        raise SampleError(
            f"Operator {missing[0]} of `{whole.id}` is missing from the parts. Pass a part with it."
        )
    waits_for = {
        index: {
            home[before]
            for position in part.ops
            for before in dependences[position]
            if position not in switches and before not in switches
        }
        - {index}
        for index, part in enumerate(parts)
    }
    try:
        for index in graphlib.TopologicalSorter(waits_for).static_order():
            yield parts[index]
    except graphlib.CycleError as error:
        names = ", ".join(f"`{parts[index].sample.id}`" for index in dict.fromkeys(error.args[1]))
        raise SampleError(
            f"These parts of `{whole.id}` depend on each other: {names}. Cut at other positions."
        ) from error
