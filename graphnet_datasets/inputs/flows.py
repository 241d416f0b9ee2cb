"""Interval analysis of how a graph uses the integers of its inputs.

Each integer value of the graph is described by terms, which represent its possible elements: `scale
* x + [low, high]`, where x is an element of one input, or only an interval. Terms follow elements
through operators that move or shift them. For other combinations, the analysis keeps only the set
of inputs that the value depends on. A use of a value as an index, as a size or in a comparison
constrains the inputs that it depends on; `trace` collects these constraints.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict

from ..operators import OperatorNames, OperatorValues
from ..sample import Op, Sample
from ..sample.arguments import Arg, ListArg, Named, iterate_refs
from .consumers import (
    ANY_INDEX,
    ELEMENTLESS,
    EQUALITIES,
    MOVING,
    ORDERS,
    SHAPE_GIVING,
    SHAPE_TAKING,
    TO_FLOAT,
    Indexing,
    indexing_of,
    iterate_parts,
    operand,
    ref_of,
    short_name,
)
from .rules import rules_of
from .terms import (
    ADDING,
    MULTIPLYING,
    SUBTRACTING,
    Flow,
    Term,
    calculate,
    created_interval,
    held_interval,
    is_whole,
    join,
    literal_operands,
    solve_index,
    sources_of,
)


@dataclasses.dataclass
class Findings:
    """Constraints on the elements of one input, from the operators that use it.

    `bounds` holds the inclusive (low, high) ranges required by index operators, with None in place
    of `high` if the size of the indexed axis is unknown. `thresholds` holds the integers c of
    comparisons `x < c`; elements must stay on their side of c. `equals` holds the integers of
    comparisons `==`.
    """

    bounds: list[tuple[int, int | None]] = dataclasses.field(default_factory=list)
    embedding_rows: list[int] = dataclasses.field(default_factory=list)
    thresholds: set[int] = dataclasses.field(default_factory=set)
    equals: set[int] = dataclasses.field(default_factory=set)
    is_mixed_into_index: bool = False
    is_mixed_into_shape: bool = False
    is_tested_into_shape: bool = False
    is_shape: bool = False
    is_number: bool = False
    is_compared_with_values: bool = False


def trace(sample: Sample) -> dict[int, Findings]:
    """Return the constraints on each integer or boolean tensor among the inputs."""
    tracer = _Tracer(sample)
    for position, op in enumerate(sample.ops):
        tracer.step(position, op)
    return dict(tracer.findings)


class _Tracer:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.findings: dict[int, Findings] = defaultdict(Findings)
        self.flows: dict[int, Flow] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.dtypes: dict[int, str] = {}
        for index, sample_input in enumerate(sample.inputs):
            if sample_input.value.dtype is None:
                continue
            self.dtypes[index] = sample_input.value.dtype
            shape = sample.shape_of(sample_input.value)
            if shape is not None:
                self.shapes[index] = shape
            if sample_input.role in ("symbol", "scalar") or not is_whole(sample_input.value.dtype):
                continue
            if sample_input.role == "input":
                self.findings[index] = Findings()
                self.flows[index] = Flow((Term(index, 1, 0, 0),))
            elif (interval := held_interval(sample_input)) is not None:
                self.flows[index] = Flow((Term(None, 0, *interval),))

    def step(self, position: int, op: Op) -> None:
        """Record the constraints of operator `position` on its operands, and the terms of its
        result."""
        own = len(self.sample.inputs) + position
        self._record_result(own, op)
        name = short_name(op.target)
        used = [ref for ref in iterate_refs((op.args, op.kwargs)) if ref in self.flows]
        if not used:
            if name in ("arange", "full", "zeros", "ones") and (
                interval := created_interval(name, op)
            ):
                self.flows[own] = Flow((Term(None, 0, *interval),))
            return
        self._note_indices(name, op)
        self._note_shapes(name, op)
        if name in ELEMENTLESS:
            return
        if name in EQUALITIES or name in ORDERS:
            self.flows[own] = self._compare(name, op)
        elif not self._gives_float(own, name, op):
            self.flows[own] = self._combine(name, op, used)

    def _record_result(self, own: int, op: Op) -> None:
        results = op.results
        if results is not None and len(results) == 1:
            shape = self.sample.shape_of(results[0])
            if shape is not None:
                self.shapes[own] = shape
            if results[0].dtype is not None:
                self.dtypes[own] = results[0].dtype
        elif results is None and op.args:
            name, first = short_name(op.target), ref_of(op.args[0])
            if name in _KEEPING_SHAPE and first in self.shapes:
                self.shapes[own] = self.shapes[first]

    def _gives_float(self, own: int, name: str, op: Op) -> bool:
        dtype = self.dtypes.get(own)
        if dtype is not None:
            is_float = not is_whole(dtype)
        else:
            named = [part for part in (*op.args, *(arg for _, arg in op.kwargs))
                     if isinstance(part, Named) and part.kind == "dtype"]  # fmt: skip
            others = [self.dtypes.get(ref) for ref in iterate_refs((op.args, op.kwargs))]
            is_float = (
                name in TO_FLOAT
                or any(not is_whole(item.name) for item in named)
                or (not named and any(item and not is_whole(item) for item in others))
                or any(type(arg) is float for arg in op.args)
            )
            if not is_float and named:
                self.dtypes[own] = named[0].name
            elif is_float:
                self.dtypes[own] = "float32"
        if is_float:
            for findings in self._behind(op):
                findings.is_number = True
        return is_float

    def _behind(self, op: Op) -> list[Findings]:
        return [
            self.findings[term.source]
            for ref in iterate_refs((op.args, op.kwargs))
            for term in self.flows.get(ref, Flow()).terms
            if term.source is not None
        ]

    # Constraints on operands

    def _note_indices(self, name: str, op: Op) -> None:
        indexing = indexing_of(self.sample.framework, op)
        if indexing is not None:
            size = self._size(op, indexing)
            for place in indexing.indices:
                ref = ref_of(operand(op, place))
                if ref is not None:
                    self._index(ref, size, is_embedding=name.startswith("embedding"))
        elif name in ANY_INDEX and len(op.args) > 1:
            table = ref_of(op.args[0])
            keys = list(iterate_parts(op.args[1]))
            for axis, key in enumerate(keys):
                ref = ref_of(key)
                if ref is None or ref not in self.flows or ref == table:
                    continue
                if self._is_boolean(ref):
                    self._note_shape_of(ref)
                    continue
                shape = self.shapes.get(table) if table is not None else None
                is_simple = Ellipsis not in keys[:axis] and None not in keys[:axis]
                is_plain = name in ("getitem", "setitem", "index", "index_put") and is_simple
                size = shape[axis] if is_plain and shape and axis < len(shape) else None
                self._index(ref, size)

    def _size(self, op: Op, indexing: Indexing) -> int | None:
        """Return the size of the axis that an operator indexes, or None if it is unknown."""
        if indexing.count is not None:
            count = operand(op, indexing.count)
            return count if type(count) is int and count > 0 else None
        table = None if indexing.table is None else ref_of(operand(op, indexing.table))
        shape = None if table is None else self.shapes.get(table)
        axis = indexing.axis
        if isinstance(axis, tuple):
            axis = operand(op, axis)
        if shape is None or type(axis) is not int or not -len(shape) <= axis < len(shape):
            return None
        return shape[axis]

    def _index(self, ref: int, size: int | None, *, is_embedding: bool = False) -> None:
        flow = self.flows.get(ref)
        if flow is None:
            return
        for term in flow.terms:
            if term.source is None:
                continue
            findings = self.findings[term.source]
            findings.bounds.append(solve_index(term, size))
            if is_embedding and size is not None:
                findings.embedding_rows.append(size)
        for source in flow.mixed:
            self.findings[source].is_mixed_into_index = True

    def _note_shapes(self, name: str, op: Op) -> None:
        if name in SHAPE_GIVING:
            refs = list(iterate_refs((op.args, op.kwargs)))
            if name == "repeat_interleave":
                refs = refs[1:]
            elif name == "masked_select" or name == "masked_scatter":
                refs = refs[1:2]
            for ref in refs:
                self._note_shape_of(ref)
        if name in SHAPE_TAKING:
            for ref in list(iterate_refs((op.args[1:], op.kwargs))):
                self._note_shape_of(ref, is_size=True)
            if name in ("full", "arange", "range", "zeros", "ones", "empty", "uniform") and op.args:
                for ref in iterate_refs(op.args[0]):
                    self._note_shape_of(ref, is_size=True)

    def _note_shape_of(self, ref: int, *, is_size: bool = False) -> None:
        flow = self.flows.get(ref, Flow())
        for term in flow.terms:
            if term.source is not None:
                self.findings[term.source].is_shape = True
        for source in flow.mixed:
            self.findings[source].is_mixed_into_shape = True
        for source in flow.tested:
            if is_size:
                self.findings[source].is_mixed_into_shape = True
            self.findings[source].is_tested_into_shape = True

    # Terms of results

    def _compare(self, name: str, op: Op) -> Flow:
        operands = [*op.args, *(arg for _, arg in op.kwargs)][:2]
        sides = [self._terms(arg) for arg in operands]
        mixed = frozenset().union(*(side.mixed for side in sides))
        tested = frozenset().union(*(side.tested for side in sides))
        for this, other in ((0, 1), (1, 0)):
            if this >= len(sides) or other >= len(sides):
                continue
            numbers = [
                term.low for term in sides[other].terms
                if term.source is None and term.low == term.high
            ]  # fmt: skip
            is_number = bool(numbers) and len(numbers) == len(sides[other].terms)
            for term in sides[this].terms:
                if term.source is None:
                    continue
                findings = self.findings[term.source]
                if not is_number or sides[other].mixed or term.low != term.high:
                    findings.is_compared_with_values = True
                    mixed |= {term.source}
                    continue
                tested |= {term.source}
                for number in numbers:
                    _note_number(findings, name in EQUALITIES, term, number)
        return Flow((Term(None, 0, 0, 1),), mixed, tested)

    def _combine(self, name: str, op: Op, used: list[int]) -> Flow:
        if name in MOVING:
            return self._moved(name, op, used)
        arithmetic = self._arithmetic(name, op)
        if arithmetic is not None:
            return arithmetic
        # Other operators, such as reductions, logical operations and sorts, only keep the sources.
        mixed: frozenset[int] = frozenset()
        tested: frozenset[int] = frozenset()
        for ref in used:
            flow = self.flows[ref]
            mixed |= flow.mixed | sources_of(flow)
            tested |= flow.tested
        return Flow((), mixed, tested)

    def _moved(self, name: str, op: Op, used: list[int]) -> Flow:
        if name == "getitem" and op.args and ref_of(op.args[0]) not in self.flows:
            return Flow()  # indexed by integers, but its elements are not
        skipped: set[int] = set()
        if name == "getitem":
            skipped = set(iterate_refs(op.args[1:]))
        elif name in _CONDITION:
            place = int(_CONDITION[name])
            skipped = set(iterate_refs(op.args[place])) if len(op.args) > place else set()
        terms: list[Term] = []
        mixed: frozenset[int] = frozenset()
        tested: frozenset[int] = frozenset()
        for ref in used:
            flow = self.flows[ref]
            if ref not in skipped:
                terms += flow.terms
                mixed |= flow.mixed
                tested |= flow.tested
        literals = [arg for arg in literal_operands(name, op) if type(arg) is int]
        terms += [Term(None, 0, value, value) for value in literals]
        return join(terms, mixed, tested)

    def _arithmetic(self, name: str, op: Op) -> Flow | None:
        """Return the flow of a sum, difference or product of two operands, or None if it cannot
        be represented."""
        if len(op.args) < 2 and not op.kwargs:
            return None
        operands = [*op.args, *(arg for _, arg in op.kwargs)]
        if name in rules_of(self.sample.framework).scaling:
            return self._scaled(op)
        if name in SUBTRACTING and name in ("rsub", "__rsub__"):
            operands = [operands[1], operands[0], *operands[2:]]
        if name not in ADDING | SUBTRACTING | MULTIPLYING or len(operands) != 2:
            return None
        left, right = self._terms(operands[0]), self._terms(operands[1])
        if not left.terms or not right.terms:
            return None
        terms = []
        for left_term in left.terms:
            for right_term in right.terms:
                both = calculate(name, left_term, right_term)
                if both is None:
                    return None
                terms += both
        return join(terms, left.mixed | right.mixed, left.tested | right.tested)

    def _scaled(self, op: Op) -> Flow | None:
        """Return the flow of Paddle's `scale(x, scale, bias, bias_after_scale)`."""
        flow = self._terms(op.args[0])
        factor, bias = (operand(op, place) for place in ((1, "scale"), (2, "bias")))
        after = operand(op, (3, "bias_after_scale"))
        if type(factor) not in (int, float) or type(bias) not in (int, float) or after is False:
            return None
        if factor != int(factor) or bias != int(bias):  # type: ignore[arg-type]
            return None
        by, plus = Term(None, 0, int(factor), int(factor)), Term(None, 0, int(bias), int(bias))  # type: ignore[arg-type]
        terms = []
        for term in flow.terms:
            scaled = calculate("mul", term, by)
            if scaled is None:
                return None
            for scaled_term in scaled:
                terms += calculate("add", scaled_term, plus) or ()
        return join(terms, flow.mixed, flow.tested)

    def _terms(self, arg: Arg) -> Flow:
        if type(arg) is int or type(arg) is bool:
            return Flow((Term(None, 0, int(arg), int(arg)),))
        if type(arg) is float and math.isfinite(arg) and arg == int(arg):
            return Flow((Term(None, 0, int(arg), int(arg)),))
        if isinstance(arg, ListArg | tuple):
            parts = [self._terms(part) for part in iterate_parts(arg)]
            return Flow(
                tuple(term for part in parts for term in part.terms),
                frozenset().union(*(part.mixed for part in parts)),
                frozenset().union(*(part.tested for part in parts)),
            )
        ref = ref_of(arg)
        return self.flows.get(ref, Flow()) if ref is not None else Flow()

    def _is_boolean(self, ref: int) -> bool:
        dtype = self.dtypes.get(ref)
        if dtype is not None:
            return dtype == "bool"
        flow = self.flows[ref]
        return bool(flow.tested or flow.mixed) and all(
            term.source is None and 0 <= term.low <= term.high <= 1 for term in flow.terms
        )


_KEEPING_SHAPE = OperatorNames("keeps_shape")
_CONDITION = OperatorValues("condition")


def _note_number(findings: Findings, is_equality: bool, term: Term, number: int) -> None:
    """Record the comparison of `scale * x + c` with a number as a comparison of x."""
    if term.scale == 0:
        return
    quotient, remainder = divmod(number - term.low, term.scale)
    if not is_equality:
        findings.thresholds.update((quotient, quotient + 1))
    elif remainder == 0:
        findings.equals.add(quotient)
