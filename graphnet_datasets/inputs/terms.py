"""What the elements of an integer value may be, and what sums and products make of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..operators import OperatorNames
from ..sample import Input, Op
from ..sample.arguments import Arg, iterate_refs
from .storage import STORAGE

MAX_TERMS = 8
"""Values made of more inputs than this are only remembered as made of them."""

ADDING = OperatorNames("adds")
SUBTRACTING = OperatorNames("subtracts")
MULTIPLYING = OperatorNames("multiplies")
_LITERAL_ELEMENTS = OperatorNames("literal_elements")


class Term(NamedTuple):
    """Elements `scale * x + c`, x of input `source` and low <= c <= high; no source: c alone."""

    source: int | None
    scale: int
    low: int
    high: int


class Flow(NamedTuple):
    """What a value's elements are: terms, and the inputs that went into them otherwise.

    `tested` are the inputs of which only comparisons with numbers went in.
    """

    terms: tuple[Term, ...] = ()
    mixed: frozenset[int] = frozenset()
    tested: frozenset[int] = frozenset()


def is_whole(dtype: str) -> bool:
    """Tell whether elements of a dtype are integers or booleans.

    >>> is_whole("int64"), is_whole("bool"), is_whole("bfloat16")
    (True, True, False)
    """
    return "float" not in dtype and "complex" not in dtype


def held_interval(each: Input) -> tuple[int, int] | None:
    """Return the smallest and the largest element of a stored or measured integer tensor."""
    if each.data is not None and each.value.dtype is not None:
        elements = np.frombuffer(each.data, np.dtype(STORAGE[each.value.dtype]).newbyteorder("<"))
        return (int(elements.min()), int(elements.max())) if elements.size else None
    held = each.statistics
    if held is None or held.min is None or held.max is None:
        return None
    if not math.isfinite(held.min) or not math.isfinite(held.max):
        return None
    return int(held.min), int(held.max)


def created_interval(name: str, op: Op) -> tuple[int, int] | None:
    """Return the least and the greatest element that an operator makes of its literals, or None."""
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
    """Return the x for which `scale * x + c` is an index of an axis of `size` for every c."""
    scale = term.scale
    if scale > 0:
        high = None if size is None else (size - 1 - term.high) // scale
        return -(term.low // scale), high
    if scale < 0:
        low = 0 if size is None else -((size - 1 - term.high) // -scale)
        return low, term.low // -scale
    return 0, None


def sources_of(flow: Flow) -> frozenset[int]:
    """Return the values that the elements of a flow may come from."""
    return frozenset(term.source for term in flow.terms if term.source is not None)


def join(terms: list[Term], mixed: frozenset[int], tested: frozenset[int]) -> Flow:
    """Return the flow of several terms; where there are too many, only where they come from."""
    different = tuple(dict.fromkeys(terms))
    if len(different) <= MAX_TERMS:
        return Flow(different, mixed, tested)
    return Flow((), mixed | sources_of(Flow(different)), tested)


def literal_operands(name: str, op: Op) -> list[Arg]:
    """Return the operands of a moving operator that may become elements of its result."""
    if name in _LITERAL_ELEMENTS:
        return [*op.args[1:], *(arg for _, arg in op.kwargs)]
    return []


def calculate(name: str, one: Term, two: Term) -> list[Term] | None:
    """Return the terms of a sum, difference or product, or None where it is none."""
    if name in MULTIPLYING:
        if one.source is not None and two.source is not None:
            return None
        if one.source is None:
            one, two = two, one
        if two.low == two.high:
            ends = sorted((one.low * two.low, one.high * two.low))
            return [Term(one.source, one.scale * two.low, ends[0], ends[1])]
        if (two.low, two.high) == (0, 1):  # a mask: the elements themselves, or zeros
            return [one, Term(None, 0, 0, 0)]
        return None
    if one.source is not None and two.source is not None:
        return None
    if name in SUBTRACTING:
        two = Term(two.source, -two.scale, -two.high, -two.low)
    source = one.source if one.source is not None else two.source
    return [Term(source, one.scale + two.scale, one.low + two.low, one.high + two.high)]
