"""Cut a sample into samples that run one after the other and give what the whole gives.

The operators keep their order and each goes to exactly one part. What a later part needs of an
earlier one crosses as a tensor or a Python number: a tuple cannot be the input of a sample, so no
cut separates it from the operators that take it apart, and none lies inside a region (autocast,
vmap) that one operator opens and another closes.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Iterator, Sequence

from ..errors import SampleError
from ..frameworks import find_results
from ..frameworks.torch.building.entries import entry_of
from ..frameworks.torch.operators.python import PAIRS
from ..sample import Input, Sample, Value
from ..sample.arguments import Ref, iterate_refs, map_refs

_CLOSERS = frozenset(PAIRS.values())
_GRAD_MODE = "torch._C._set_grad_enabled"


@dataclasses.dataclass(frozen=True)
class Part:
    """One piece: `sample` takes `takes` and gives a tuple of `gives`, values of the whole."""

    sample: Sample
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """A sample and the parts it was cut into, in the order in which they run."""

    whole: Sample
    parts: tuple[Part, ...]


def find_cuts(sample: Sample) -> tuple[int, ...]:
    """Return before which operators a sample may be cut, in order.

    Raises:
        UnknownOperatorError, MaterializeError: it cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Op, Value
    >>> halves = Sample("example/halves", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.chunk", (Ref(1), 2)),
    ...      Op("operator.getitem", (Ref(2), 0))), Ref(3))
    >>> find_cuts(halves)
    (1,)
    """
    return _Cutter(sample).cuts


def decompose(
    sample: Sample, num_parts: int = 2, *, cuts: Sequence[int] | None = None
) -> Decomposition:
    """Cut a sample into at most `num_parts` parts of about as many operators each.

    `cuts` says before which operators to cut instead. The inputs of a part that are values of an
    earlier one have shape, dtype and strides at the sizes of the capture; parts are named
    `ID/part_0`, … and are of the kind `subgraph`.

    Raises:
        SampleError: it cannot be cut at a place that was asked for.
        UnknownOperatorError, MaterializeError: it cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Op, Value
    >>> chain = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.exp", (Ref(1),))), Ref(2))
    >>> [(part.sample.id, part.takes, part.gives) for part in decompose(chain).parts]
    [('example/chain/part_0', (0,), (1,)), ('example/chain/part_1', (1,), (2,))]
    """
    if num_parts < 1:
        raise SampleError(f"`num_parts` is {num_parts}; it must be 1 or more.")
    cutter = _Cutter(sample)
    if cuts is None:
        cuts = _even(cutter.cuts, sample.num_ops, num_parts)
    for cut in cuts:
        if cut not in cutter.cuts:
            raise SampleError(
                f"`{sample.id}` cannot be cut before operator {cut}. It can be cut before "
                f"{', '.join(map(str, cutter.cuts)) or 'none'}."
            )
    edges = [0, *sorted(set(cuts)), sample.num_ops]
    return Decomposition(
        sample,
        tuple(
            cutter.part(index, start, stop)
            for index, (start, stop) in enumerate(itertools.pairwise(edges))
        ),
    )


def _even(cuts: Sequence[int], num_ops: int, num_parts: int) -> list[int]:
    """Return the cuts nearest to an even division."""
    wanted = [num_ops * index // num_parts for index in range(1, num_parts)]
    return sorted({min(cuts, key=lambda cut: abs(cut - place)) for place in wanted if cuts})


class _Cutter:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.num_inputs = len(sample.inputs)
        self.results = find_results(sample)
        self.output_refs = frozenset(iterate_refs(sample.outputs))
        self.cuts = self._find_cuts()

    def _find_cuts(self) -> tuple[int, ...]:
        sample = self.sample
        last_use = [-1] * len(self.results)
        for position, op in enumerate(sample.ops):
            for ref in iterate_refs((op.args, op.kwargs)):
                if ref >= self.num_inputs:
                    last_use[ref - self.num_inputs] = position
        cuts = []
        uncrossable_until = 0
        for position, is_inside in enumerate(_lie_in_regions(sample)):
            if position and not is_inside and uncrossable_until < position:
                cuts.append(position)
            if self.results[position].kind == "other":
                uncrossable_until = max(uncrossable_until, last_use[position])
        return tuple(cuts)

    def part(self, index: int, start: int, stop: int) -> Part:
        sample, first = self.sample, self.num_inputs + start
        ops = sample.ops[start:stop]
        used = {ref for op in ops for ref in iterate_refs((op.args, op.kwargs))}
        takes = tuple(sorted(ref for ref in used if ref < first))
        own = range(first, self.num_inputs + stop)
        is_last = stop == sample.num_ops
        gives = tuple(
            value
            for value in own
            if value in self.output_refs or (not is_last and sample.last_uses[value] >= stop)
        )
        places = {value: place for place, value in enumerate((*takes, *own))}

        def renumber(ref: int) -> Ref:
            return Ref(places[ref])

        return Part(
            dataclasses.replace(
                sample,
                id=f"{sample.id}/part_{index}",
                kind="subgraph",
                inputs=tuple(map(self._input, takes)),
                ops=tuple(
                    dataclasses.replace(
                        op, args=map_refs(op.args, renumber), kwargs=map_refs(op.kwargs, renumber)
                    )
                    for op in ops
                ),
                outputs=tuple(map(renumber, gives)),
                provenance=dataclasses.replace(
                    sample.provenance, parent_id=sample.id, graph_index=index
                ),
            ),
            takes,
            gives,
        )

    def _input(self, value: int) -> Input:
        if value < self.num_inputs:
            return self.sample.inputs[value]
        result = self.results[value - self.num_inputs]
        if result.kind == "tensor":
            return Input("input", result.value)
        dtype, form = _NUMBERS[type(result.number)]
        return Input("scalar", Value(dtype, ()), data=struct.pack(form, result.number))


def _lie_in_regions(sample: Sample) -> Iterator[bool]:
    """Tell for the place before each operator whether a region is open there."""
    if sample.framework != "torch":  # paddle's tables have no operators that open one
        yield from itertools.repeat(False, sample.num_ops)
        return
    depth = num_grad_modes = 0
    for op in sample.ops:
        yield depth != 0 or num_grad_modes % 2 != 0
        name = entry_of(sample, op).name
        depth += (name in PAIRS) - (name in _CLOSERS)
        num_grad_modes += name == _GRAD_MODE


_NUMBERS = {bool: ("bool", "<?"), int: ("int64", "<q"), float: ("float64", "<d")}
"""Dtype and form of the stored element of a Python number."""
