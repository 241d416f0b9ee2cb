"""Symbolic descriptions of integer elements, and their arithmetic."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..operators import OperatorNames
from ..sample import Input, Op
from ..sample.arguments import Arg, iterate_refs
from .storage import STORAGE

MAX_TERMS = 8
"""If a value has more terms, only the set of its inputs is kept."""

ADDING = OperatorNames("adds")
SUBTRACTING = OperatorNames("subtracts")
MULTIPLYING = OperatorNames("multiplies")
_LITERAL_ELEMENTS = OperatorNames("literal_elements")


class Term(NamedTuple):
    """Elements `scale * x + c` with low <= c <= high, where x is an element of input `source`.

    If `source` is None, the elements are c.
    """

    source: int | None
    scale: int
    low: int
    high: int


class Flow(NamedTuple):
    """The elements of a value: its terms, and other inputs that it depends on.

    `mixed` are inputs that affect the elements in an unknown way. `tested` are inputs that affect
    them only through comparisons with numbers.
    """

    terms: tuple[Term, ...] = ()
    mixed: frozenset[int] = frozenset()
    tested: frozenset[int] = frozenset()


def is_whole(dtype: str) -> bool:
    """Return whether a dtype is integer or boolean.

    >>> is_whole("int64"), is_whole("bool"), is_whole("bfloat16")
    (True, True, False)
    """
    return "float" not in dtype and "complex" not in dtype


def held_interval(graph_input: Input) -> tuple[int, int] | None:
    """Return the smallest and largest element of an integer tensor, stored or measured."""
    if graph_input.data is not None and graph_input.value.dtype is not None:
        elements = np.frombuffer(
            graph_input.data, np.dtype(STORAGE[graph_input.value.dtype]).newbyteorder("<")
        )
        return (int(elements.min()), int(elements.max())) if elements.size else None
    statistics = graph_input.statistics
    if statistics is None or statistics.min is None or statistics.max is None:
        return None
    if not math.isfinite(statistics.min) or not math.isfinite(statistics.max):
        return None
    return int(statistics.min), int(statistics.max)


def created_interval(name: str, op: Op) -> tuple[int, int] | None:
    """Return the smallest and largest element that an operator creates from literals, or None."""
    numbers = [arg for arg in op.args if type(arg) is int]
    if name == "arange":
        if any(True for _ in iterate_refs((op.args, op.kwargs))) or not numbers:
            return None
        first, last = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
        return min(first, last), max(first, last - 1)
    if name == "full":
        value = op.args[1] if len(op.args) > 1 else None
        if type(value) not in (int, float) or not math.isfinite(value) or value != int(value):  # type: ignore[arg-type]
            return None
        return int(value), int(value)  # type: ignore[arg-type]
    return (0, 0) if name == "zeros" else (1, 1)


def solve_index(term: Term, size: int | None) -> tuple[int, int | None]:
    """Return the range of x for which `scale * x + c` is a valid index of an axis of `size` for
    all c."""
    scale = term.scale
    if scale > 0:
        high = None if size is None else (size - 1 - term.high) // scale
        return -(term.low // scale), high
    if scale < 0:
        low = 0 if size is None else -((size - 1 - term.high) // -scale)
        return low, term.low // -scale
    return 0, None


def sources_of(flow: Flow) -> frozenset[int]:
    """Return the inputs that the terms of a flow depend on."""
    return frozenset(term.source for term in flow.terms if term.source is not None)


def join(terms: list[Term], mixed: frozenset[int], tested: frozenset[int]) -> Flow:
    """Return the flow of several terms; if there are too many, keep only their sources."""
    unique_terms = tuple(dict.fromkeys(terms))
    if len(unique_terms) <= MAX_TERMS:
        return Flow(unique_terms, mixed, tested)
    return Flow((), mixed | sources_of(Flow(unique_terms)), tested)


def literal_operands(name: str, op: Op) -> list[Arg]:
    """Return the operands of a moving operator that may become elements of its result."""
    if name in _LITERAL_ELEMENTS:
        return [*op.args[1:], *(arg for _, arg in op.kwargs)]
    return []


def calculate(name: str, left: Term, right: Term) -> list[Term] | None:
    """Return the terms of a sum, difference or product, or None if they cannot be represented."""
    if name in MULTIPLYING:
        if left.source is not None and right.source is not None:
            return None
        if left.source is None:
            left, right = right, left
        if right.low == right.high:
            ends = sorted((left.low * right.low, left.high * right.low))
            return [Term(left.source, left.scale * right.low, ends[0], ends[1])]
        if (right.low, right.high) == (0, 1):  # a mask: the elements themselves, or zeros
            return [left, Term(None, 0, 0, 0)]
        return None
    if left.source is not None and right.source is not None:
        return None
    if name in SUBTRACTING:
        right = Term(right.source, -right.scale, -right.high, -right.low)
    source = left.source if left.source is not None else right.source
    return [Term(source, left.scale + right.scale, left.low + right.low, left.high + right.high)]
