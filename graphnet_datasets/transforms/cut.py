"""Cutting of samples: a new sample from some operators of another sample.

Tensors cross the border of a part as inputs. Python numbers that follow from shapes become literals
of the part; numbers that are only known at run time cross as scalars. A tuple cannot be an input of
a sample, so operators that unpack a tuple stay with the operator that returns it.
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
"""Operators that return metadata of a tensor, independent of its elements."""

_SCALARS = {bool: ("bool", "<?"), int: ("int64", "<q"), float: ("float64", "<d")}
"""Dtype and `struct` format of the stored element of a Python number."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a sample: `sample` takes the values `takes` and returns the values `gives`.

    `ops` are the positions of its operators in the whole sample, in order.
    """

    sample: Sample
    ops: tuple[int, ...]
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@raises_only(TransformError)
def cut(sample: Sample, ops: Iterable[int], *, seen: Mapping[int, Observed] | None = None) -> Part:
    """Create a sample from a convex set of operators, given by position.

    Operators that unpack the result of a selected operator are included, and so are the operators
    that open and close the region (autocast) around it. The part has the sizes of the capture, its
    inputs in order of first use (weights remain weights), and as outputs the values needed by other
    operators or by the outputs of the graph. `seen` contains values observed in a run
    (`frameworks.observe`); without it, crossing tensors have no statistics. `provenance` names the
    whole sample and the operators.

    Use a `Cutter` to cut a sample several times.

    Raises:
        SampleError: operators do not exist, are not convex, or share a tuple with other operators.
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
    """Cuts a sample several times; the analysis of the sample is done once.

    `allow_unchecked_operators` is for callers that pass the sample to a compiler. `results` are
    known results of the operators, for example from a run in which sizes depend on elements; by
    default they are computed by walking the sample.

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
        """Create a sample from a convex set of operators; see `cut`.

        `name` is the last part of the id; by default it is derived from the positions.

        Raises:
            SampleError: as `cut`.
        """
        selected = self.complete(ops)
        self._check(selected)
        positions = sorted(selected)
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
        gives = tuple(value for value in order if self._is_needed(value, selected))
        if not gives:  # only numbers are computed, or a write whose result is unused
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
                custom for custom in whole.custom_operators if custom.name in own_customs
            ),
            provenance=dataclasses.replace(
                whole.provenance, parent_id=whole.id, parent_ops=tuple(positions)
            ),
        )
        return Part(part, tuple(positions), tuple(takes), gives)

    def complete(self, ops: Iterable[int]) -> set[int]:
        """Return the operators together with the operators that must be included.

        Raises:
            SampleError: the set is empty, or an operator does not exist.
        """
        selected = set(ops)
        if not selected:
            raise SampleError(
                f"No operators of `{self.sample.id}` were selected. Pass at least one position."
            )
        invalid = [position for position in selected if not 0 <= position < self.sample.num_ops]
        if invalid:
            raise SampleError(
                f"`{self.sample.id}` has the operators 0 to {self.sample.num_ops - 1}, "
                f"not {invalid[0]}."
            )
        pending = list(selected)
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
            pending += set(more) - selected
            selected.update(more)
        return selected

    def may_cross(self, position: int) -> bool:
        """Return whether the result of an operator can be passed between parts."""
        value = self.num_inputs + position
        return self.results[position].kind != "other" or value in self._constants

    def is_known(self, value: int) -> bool:
        """Return whether a value is a tensor of known size or a number, and so can cross."""
        return value < self.num_inputs or self.may_cross(value - self.num_inputs)

    def gives_tensor(self, value: int) -> bool:
        """Return whether a value is a tensor of known size, or a tuple that contains one."""
        if value < self.num_inputs:
            return self.sample.inputs[value].role not in ("symbol", "scalar")
        if self.results[value - self.num_inputs].kind == "tensor":
            return True
        return not self.may_cross(value - self.num_inputs) and any(
            self.results[taker].kind == "tensor" for taker in self._takers[value]
        )

    def num_elements_of(self, value: int) -> int:
        """Return the number of elements of a value; 0 unless it is a tensor of known size."""
        if value < self.num_inputs:
            shape = self.sample.shape_of(self.sample.inputs[value].value)
        else:
            shape = self.sample.shape_of(self.results[value - self.num_inputs].value)
        return 0 if shape is None else math.prod(shape)

    def num_elements(self, position: int) -> int:
        """Return the number of elements of a result; 0 unless it is a tensor of known size."""
        return self.num_elements_of(self.num_inputs + position)

    def _check(self, selected: set[int]) -> None:
        whole = self.sample
        for region in self.regions:
            inside = range(region.opens, region.closes + 1)
            if (
                region.is_closed
                and not selected.isdisjoint(inside)
                and not selected.issuperset(inside)
            ):
                raise SampleError(
                    f"Operators {region.opens} to {region.closes} of `{whole.id}` run under vmap, "
                    "where values have an additional dimension. Select all of them or none."
                )
        for position in sorted(selected):
            waits_for = iterate_refs((whole.ops[position].args, whole.ops[position].kwargs))
            for maker in (ref - self.num_inputs for ref in waits_for if ref >= self.num_inputs):
                if maker not in selected:
                    self._check_crossing(maker, position)
            for taker in self._takers[self.num_inputs + position]:
                if taker not in selected:
                    self._check_crossing(position, taker)
        detour = find_detour(self.dependences, selected)
        if detour is not None:
            first, middle, last = detour
            raise SampleError(
                f"The selected operators of `{whole.id}` are not convex: operator {last} depends "
                "on "
                f"operator {middle}, which is not selected and depends on operator {first}."
                f" Select operator {middle} too, or omit one of the others."
            )

    def _check_crossing(self, maker: int, taker: int) -> None:
        if not self.may_cross(maker):
            raise SampleError(
                f"Operator {maker} (`{self.sample.ops[maker].target}`) of `{self.sample.id}` "
                "returns "
                f"neither a tensor of known size nor a number, and operator {taker} uses it. "
                "Select both or neither."
            )

    def _is_needed(self, value: int, selected: Collection[int]) -> bool:
        if value in self._output_refs:
            return True
        if self.results[value - self.num_inputs].kind == "other" or value in self._constants:
            return False
        return any(taker not in selected for taker in self._takers[value])

    def _last_results(self, positions: Sequence[int]) -> tuple[int, ...]:
        for position in reversed(positions):
            if self.results[position].kind != "other":
                return (self.num_inputs + position,)
        return ()

    def _find_constants(self) -> dict[int, Arg]:
        """Return the values determined by the sizes of the capture."""
        constants: dict[int, Arg] = {}
        for index, symbol in enumerate(self.sample.inputs):
            if symbol.role == "symbol":
                constants[index] = self.sample.shape_of(Value(None, (symbol.source_name,)))[0]  # type: ignore[index]
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
            value_input = self.sample.inputs[value]
            return dataclasses.replace(value_input, value=self._at_capture(value_input.value))
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
