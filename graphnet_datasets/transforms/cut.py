"""Make a sample of some operators of another one.

What a part needs of the rest crosses as a tensor; a Python number that follows from shapes is
written into the part as a literal, and one that only a run tells crosses as a scalar. A tuple
cannot be the input of a sample, so operators that take one apart stay with the one that made it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..errors import SampleError, TransformError, raises_only
from ..frameworks import find_regions, find_results
from ..frameworks.results import Observed, Result
from ..sample import Input, Op, Sample, Value
from ..sample.arguments import Arg, Ref, iterate_refs, map_refs
from ..sample.targets import base_name
from .dependences import find_dependences, find_detour

_GETITEM = "getitem"
_METADATA = frozenset(
    {
        *("size", "shape", "dim", "ndim", "ndimension", "numel", "nelement", "stride", "len"),
        *("element_size", "storage_offset", "itemsize", "__len__", "getattr"),
        *("is_floating_point", "is_complex", "is_contiguous"),
    }
)
"""Operators that ask a tensor for what its elements do not decide."""

_SCALARS = {bool: ("bool", "<?"), int: ("int64", "<q"), float: ("float64", "<d")}
"""Dtype and form of the stored element of a Python number."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One piece: `sample` takes `takes` and gives a tuple of `gives`, values of the whole.

    `ops` are the operators of the whole that it holds, in order.
    """

    sample: Sample
    ops: tuple[int, ...]
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@raises_only(TransformError)
def cut(sample: Sample, ops: Iterable[int], *, seen: Mapping[int, Observed] | None = None) -> Part:
    """Make a sample of a convex set of operators, given by their positions.

    Operators that take apart what a chosen one gives come along, and so do those that open and
    close the region (autocast) in which a chosen one stands. The part has the sizes of the capture,
    its inputs in the order of their first use (weights stay weights), and as outputs what the
    rest of the graph and its outputs need. `seen` is what a run showed of the values
    (`frameworks.observe`); without it, tensors that cross have no statistics. `provenance` names
    the whole and the operators.

    To cut one sample many times, make a `Cutter`.

    Raises:
        SampleError: the operators are not there, are not convex, or share a tuple with the rest.
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> chain = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.relu", (Ref(0),)), Op("torch.exp", (Ref(1),)), Op("torch.abs", (Ref(2),))),
    ...     Ref(3))
    >>> part = cut(chain, [1])
    >>> part.sample.id, part.takes, part.gives, part.sample.provenance.parent_ops
    ('example/chain/ops_1', (1,), (2,), (1,))
    """
    return Cutter(sample, seen=seen).cut(ops)


class Cutter:
    """Cuts one sample many times; what has to be found out about it is found out once.

    `allow_unchecked_operators` is for those who have a compiler look at the sample.
    `results` are what operators give where that is known better than walking tells it, as after a
    run whose sizes depend on elements.

    Raises:
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.
    """

    def __init__(
        self,
        sample: Sample,
        *,
        seen: Mapping[int, Observed] | None = None,
        allow_unchecked_operators: bool = False,
        results: Sequence[Result] | None = None,
    ) -> None:
        self.sample = sample
        self.allow_unchecked_operators = allow_unchecked_operators
        self.num_inputs = len(sample.inputs)
        self.results = find_results(sample) if results is None else tuple(results)
        self.regions = find_regions(sample)
        self.dependences = find_dependences(sample)
        self._seen = seen or {}
        self._takers: list[list[int]] = [[] for _ in range(self.num_inputs + sample.num_ops)]
        for position, op in enumerate(sample.ops):
            for ref in set(iterate_refs((op.args, op.kwargs))):
                self._takers[ref].append(position)
        self._output_refs = frozenset(iterate_refs(sample.outputs))
        self._constants = self._find_constants()

    def cut(self, ops: Iterable[int], name: str = "") -> Part:
        """Make a sample of a convex set of operators; see `cut`.

        `name` ends its id in the place of the operators' positions.

        Raises:
            SampleError: as `cut`.
        """
        chosen = self.complete(ops)
        self._check(chosen)
        positions = sorted(chosen)
        order = {self.num_inputs + position: None for position in positions}
        literals: dict[int, Arg] = {}
        takes: dict[int, None] = {}
        for position in positions:
            op = self.sample.ops[position]
            for ref in iterate_refs((op.args, op.kwargs)):
                if ref in order:
                    continue
                if ref in self._constants:
                    literals[ref] = self._constants[ref]
                else:
                    takes[ref] = None
        places = {value: place for place, value in enumerate((*takes, *order))}
        gives = tuple(value for value in order if self._is_needed(value, chosen))
        if not gives:  # what only numbers are made of, or a write that nobody reads
            gives = self._last_results(positions)

        def renumber(ref: int) -> Any:
            return Ref(places[ref]) if ref in places else literals[ref]

        called = {self.sample.ops[position].target for position in positions}
        customs = self.sample.custom_operators_by_target
        own_customs = {customs[target].name for target in called if target in customs}
        whole = self.sample
        part = dataclasses.replace(
            whole,
            id=f"{whole.id}/{name or _name(positions)}",
            kind="subgraph",
            inputs=tuple(map(self._input, takes)),
            ops=tuple(self._op(whole.ops[position], renumber) for position in positions),
            outputs=tuple(Ref(places[value]) for value in gives),
            symbols=(),
            constraints=(),
            custom_operators=tuple(
                each for each in whole.custom_operators if each.name in own_customs
            ),
            provenance=dataclasses.replace(
                whole.provenance, parent_id=whole.id, parent_ops=tuple(positions)
            ),
        )
        return Part(part, tuple(positions), tuple(takes), gives)

    def complete(self, ops: Iterable[int]) -> set[int]:
        """Return the operators with those that have to come along.

        Raises:
            SampleError: there is none, or one is not there.
        """
        chosen = set(ops)
        if not chosen:
            raise SampleError(f"No operators of `{self.sample.id}` were chosen to cut out.")
        strange = [each for each in chosen if not 0 <= each < self.sample.num_ops]
        if strange:
            raise SampleError(
                f"`{self.sample.id}` has the operators 0 to {self.sample.num_ops - 1}, "
                f"not {strange[0]}."
            )
        pending = list(chosen)
        while pending:
            position = pending.pop()
            more = [
                taker
                for taker in self._takers[self.num_inputs + position]
                if self.results[position].kind == "other"
                and base_name(self.sample.ops[taker].target) == _GETITEM
            ]
            for region in self.regions:
                if region.holds(position):
                    more += (region.opens, region.closes)
            pending += set(more) - chosen
            chosen.update(more)
        return chosen

    def may_cross(self, position: int) -> bool:
        """Tell whether what an operator gives can be handed from one part to another."""
        value = self.num_inputs + position
        return self.results[position].kind != "other" or value in self._constants

    def is_known(self, value: int) -> bool:
        """Tell whether a value is a tensor of known size or a number, and so may cross."""
        return value < self.num_inputs or self.may_cross(value - self.num_inputs)

    def gives_tensor(self, value: int) -> bool:
        """Tell whether a value is a tensor of known size, or a tuple that holds one."""
        if value < self.num_inputs:
            return self.sample.inputs[value].role not in ("symbol", "scalar")
        if self.results[value - self.num_inputs].kind == "tensor":
            return True
        return not self.may_cross(value - self.num_inputs) and any(
            self.results[taker].kind == "tensor" for taker in self._takers[value]
        )

    def num_elements_of(self, value: int) -> int:
        """Return how many elements a value has, 0 for what is no tensor of known size."""
        if value < self.num_inputs:
            shape = self.sample.shape_of(self.sample.inputs[value].value)
        else:
            shape = self.sample.shape_of(self.results[value - self.num_inputs].value)
        return 0 if shape is None else math.prod(shape)

    def num_elements(self, position: int) -> int:
        """Return how many elements an operator gives, 0 where it gives no tensor of known size."""
        return self.num_elements_of(self.num_inputs + position)

    def _check(self, chosen: set[int]) -> None:
        whole = self.sample
        for region in self.regions:
            inside = range(region.opens, region.closes + 1)
            if region.is_closed and not chosen.isdisjoint(inside) and not chosen.issuperset(inside):
                raise SampleError(
                    f"Operators {region.opens} to {region.closes} of `{whole.id}` run under vmap, "
                    "where values have a dimension more. Choose all of them, or none."
                )
        for position in sorted(chosen):
            waits_for = iterate_refs((whole.ops[position].args, whole.ops[position].kwargs))
            for maker in (ref - self.num_inputs for ref in waits_for if ref >= self.num_inputs):
                if maker not in chosen:
                    self._check_crossing(maker, position)
            for taker in self._takers[self.num_inputs + position]:
                if taker not in chosen:
                    self._check_crossing(position, taker)
        detour = find_detour(self.dependences, chosen)
        if detour is not None:
            first, middle, last = detour
            raise SampleError(
                f"The chosen operators of `{whole.id}` are not convex: operator {last} has to wait "
                f"for operator {middle}, which was not chosen and has to wait for operator {first}."
                f" Choose operator {middle} too, or leave one of the others out."
            )

    def _check_crossing(self, maker: int, taker: int) -> None:
        if not self.may_cross(maker):
            raise SampleError(
                f"Operator {maker} (`{self.sample.ops[maker].target}`) of `{self.sample.id}` gives "
                f"neither a tensor of known size nor a number, and operator {taker} takes it. "
                "Choose both, or neither."
            )

    def _is_needed(self, value: int, chosen: Collection[int]) -> bool:
        if value in self._output_refs:
            return True
        if self.results[value - self.num_inputs].kind == "other" or value in self._constants:
            return False
        return any(taker not in chosen for taker in self._takers[value])

    def _last_results(self, positions: Sequence[int]) -> tuple[int, ...]:
        for position in reversed(positions):
            if self.results[position].kind != "other":
                return (self.num_inputs + position,)
        return ()

    def _find_constants(self) -> dict[int, Arg]:
        """Return the values that follow from the sizes of the capture, and what they are there."""
        constants: dict[int, Arg] = {}
        for index, each in enumerate(self.sample.inputs):
            if each.role == "symbol":
                constants[index] = self.sample.shape_of(Value(None, (each.source_name,)))[0]  # type: ignore[index]
        for position, (op, result) in enumerate(zip(self.sample.ops, self.results, strict=True)):
            number = result.number
            if number is None:
                continue
            refs = list(iterate_refs((op.args, op.kwargs)))
            if base_name(op.target) in _METADATA or all(ref in constants for ref in refs):
                constants[self.num_inputs + position] = number
        return constants

    def _input(self, value: int) -> Input:
        if value < self.num_inputs:
            each = self.sample.inputs[value]
            return dataclasses.replace(each, value=self._at_capture(each.value))
        result = self.results[value - self.num_inputs]
        if result.kind == "tensor":
            seen = self._seen.get(value, Observed(None))
            return Input("input", result.value, statistics=seen.statistics, data=seen.data)
        dtype, form = _SCALARS[type(result.number)]
        return Input("scalar", Value(dtype, ()), data=struct.pack(form, result.number))

    def _op(self, op: Op, renumber: Any) -> Op:
        return dataclasses.replace(
            op,
            args=map_refs(op.args, renumber),
            kwargs=map_refs(op.kwargs, renumber),
            results=None if op.results is None else tuple(map(self._at_capture, op.results)),
        )

    def _at_capture(self, value: Value) -> Value:
        if not self.sample.symbols:
            return value
        stride = value.stride and self.sample.shape_of(Value(None, value.stride))
        return Value(value.dtype, self.sample.shape_of(value), stride)


def _name(positions: Sequence[int]) -> str:
    first, last = positions[0], positions[-1]
    if first == last:
        return f"ops_{first}"
    if last - first + 1 == len(positions):
        return f"ops_{first}-{last}"
    digest = hashlib.sha256(",".join(map(str, positions)).encode()).hexdigest()[:8]
    return f"ops_{first}-{last}-{digest}"
