"""Decomposition of a sample into parts that run in sequence and compute the same results.

Operators keep their order, and each belongs to exactly one part. Regions (autocast, vmap) that one
operator opens and another closes are not cut.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from ..errors import SampleError, TransformError, raises_only
from ..sample import Sample
from ..sample.arguments import iterate_refs
from .cut import Cutter, Part


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """A sample and its parts, in order of execution."""

    whole: Sample
    parts: tuple[Part, ...]


@raises_only(TransformError)
def find_cuts(sample: Sample) -> tuple[int, ...]:
    """Return the positions of operators before which a sample may be cut, in order.

    Raises:
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> halves = Sample("example/halves", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.chunk", (Ref(1), 2)),
    ...      Op("operator.getitem", (Ref(2), 0))), Ref(3))
    >>> find_cuts(halves)
    (1,)
    """
    return _find_cuts(Cutter(sample))


@raises_only(TransformError)
def decompose(
    sample: Sample, num_parts: int = 2, *, cuts: Sequence[int] | None = None
) -> Decomposition:
    """Cut a sample into at most `num_parts` parts with similar numbers of operators.

    `cuts` lists the operators to cut before instead. Parts are created by `cut` and named
    `ID/part_0`, ….

    Raises:
        SampleError: the sample cannot be cut at a requested position.
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> chain = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.exp", (Ref(1),))), Ref(2))
    >>> [(part.sample.id, part.takes, part.gives) for part in decompose(chain).parts]
    [('example/chain/part_0', (0,), (1,)), ('example/chain/part_1', (1,), (2,))]
    """
    if num_parts < 1:
        raise SampleError(f"`num_parts` is {num_parts}; it must be 1 or more.")
    cutter = Cutter(sample)
    possible = _find_cuts(cutter)
    if cuts is None:
        cuts = _even(possible, sample.num_ops, num_parts)
    for place in cuts:
        if place not in possible:
            raise SampleError(
                f"`{sample.id}` cannot be cut before operator {place}. It can be cut before "
                f"{', '.join(map(str, possible)) or 'none'}."
            )
    edges = [0, *sorted(set(cuts)), sample.num_ops]
    parts = [
        cutter.cut(range(start, stop), f"part_{index}")
        for index, (start, stop) in enumerate(itertools.pairwise(edges))
        if start < stop
    ]
    return Decomposition(sample, tuple(parts))


def _even(cuts: Sequence[int], num_ops: int, num_parts: int) -> list[int]:
    """Return the possible cuts nearest to an even division."""
    wanted = [num_ops * index // num_parts for index in range(1, num_parts)]
    return sorted({min(cuts, key=lambda cut: abs(cut - place)) for place in wanted if cuts})


def _find_cuts(cutter: Cutter) -> tuple[int, ...]:
    sample = cutter.sample
    inside = {
        position
        for region in cutter.regions
        for position in range(region.opens + 1, region.closes + 1)
    }
    last_use = [-1] * sample.num_ops
    for position, op in enumerate(sample.ops):
        for ref in iterate_refs((op.args, op.kwargs)):
            if ref >= cutter.num_inputs:
                last_use[ref - cutter.num_inputs] = position
    cuts = []
    uncrossable_until = 0
    for position in range(sample.num_ops):
        if position and position not in inside and uncrossable_until < position:
            cuts.append(position)
        if not cutter.may_cross(position):
            uncrossable_until = max(uncrossable_until, last_use[position])
    return tuple(cuts)
