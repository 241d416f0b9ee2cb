"""Detection of inputs that hold offsets, which must be sorted.

Rows of a sparse matrix, bags of an embedding and neighbors of points are stored consecutively, and
a vector of offsets holds the start of each. Differences of offsets are counts and must not be
negative; the last offset is the total size.
"""

from __future__ import annotations

import numpy.typing as npt

from ..operators import OperatorNames, OperatorValues
from ..sample import Op, Sample
from .columns import END, Columns, cut_of
from .consumers import operand, parse_place, ref_of, short_name
from .keeping import once_per_sample
from .rules import InputRules, rules_of
from .terms import SUBTRACTING, is_whole

_KEEPING = OperatorNames("in_order")

_TAKING = OperatorValues("offsets")


@once_per_sample
def find_offsets(sample: Sample) -> frozenset[int]:
    """Return the integer vectors among a sample's inputs that hold offsets.

    >>> from graphnet_datasets.sample import Input, Value
    >>> from graphnet_datasets.sample.arguments import Ref, SliceArg
    >>> ends = Op("operator.getitem", (Ref(0), SliceArg(1, None, None)))
    >>> starts = Op("operator.getitem", (Ref(0), SliceArg(None, -1, None)))
    >>> counts = Op("operator.sub", (Ref(1), Ref(2)))
    >>> splits = Input("input", Value("int64", (9,)))
    >>> ops = (ends, starts, counts)
    >>> sorted(find_offsets(Sample("example", "torch", "other", (splits,), ops, Ref(3))))
    [0]
    """
    return frozenset(_Search(sample).found)


def put_in_order(elements: npt.NDArray, low: float, high: float) -> None:
    """Sort offsets in place; set the first to `low` and the last to `high`."""
    elements.sort()
    if elements.size:
        elements[0] = low
    if elements.size > 1:
        elements[-1] = high


_VECTOR = Columns(frozenset(), 0, END, 1)
"""The elements of a vector of any length, as columns of its single axis."""


class _Search:
    def __init__(self, sample: Sample) -> None:
        self._rules = rules_of(sample.framework)
        self.found: set[int] = set()
        self._sources = {
            index: index
            for index, sample_input in enumerate(sample.inputs)
            if sample_input.role == "input"
            and sample_input.value.dtype not in (None, "bool")
            and is_whole(sample_input.value.dtype or "")
            and len(sample_input.value.shape or ()) == 1
        }
        """Values that equal an input."""
        self._ends: dict[int, tuple[int, str]] = {}
        """Values that are an input without its first or last element."""
        if self._sources:
            for position, op in enumerate(sample.ops):
                self._step(len(sample.inputs) + position, op)

    def _step(self, own: int, op: Op) -> None:
        name = short_name(op.target)
        first = ref_of(operand(op, (0, "input")))
        if name in _TAKING:
            ref = ref_of(operand(op, parse_place(_TAKING[name])))
            if ref in self._sources:
                self.found.add(self._sources[ref])
        elif name in SUBTRACTING and len(op.args) > 1:
            minuend, subtrahend = (
                self._ends.get(-1 if ref is None else ref) for ref in map(ref_of, op.args[:2])
            )
            if (
                minuend
                and subtrahend
                and minuend[0] == subtrahend[0]
                and (minuend[1], subtrahend[1]) == ("ends", "starts")
            ):
                self.found.add(minuend[0])
        elif first is None:
            return
        elif name in _KEEPING:
            if first in self._sources:
                self._sources[own] = self._sources[first]
            elif first in self._ends:
                self._ends[own] = self._ends[first]
        elif first in self._sources and (part := _part_of(name, op, self._rules)) is not None:
            self._ends[own] = self._sources[first], part


def _part_of(name: str, op: Op, rules: InputRules) -> str | None:
    """Return which slice of a vector an operator takes.

    "ends" lacks the first element, "starts" lacks the last element; None is any other slice.
    """
    if name != "getitem" and not (name == "slice" and rules.has_single_slices):
        return None
    cut = cut_of(name, op, _VECTOR, rules)
    if cut is None or cut.columns is None:
        return None
    start, stop, is_one = cut.columns
    if start == 1 and stop >= END and not is_one:
        return "ends"
    return "starts" if (start, stop) == (0, -1) else None
