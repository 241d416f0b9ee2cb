"""Several calls of one run judged together: the worst counts, and a stored answer is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from ...scores.tolerance import min_t
from .correctness import Output, compare_outputs

Pair: TypeAlias = tuple[Sequence[Output], Sequence[Output]]
"""The outputs of eager and of the candidate in one call; they differ in their elements at most."""

MAX_CONSTANT_CALLS = 16
"""Calls that the outputs of the first are held against, to see whether these would pass there."""


def compare_calls(
    calls: Sequence[Pair], oracle: Sequence[Output] | None = None
) -> list[dict[str, Any]]:
    """Return a row of `OUTPUT_FIELDS` for each output: of the first call, with the worst errors.

    The first call is given whole, and `oracle` has its outputs in float64. Of each output the call
    with the largest `min_t` gives the errors; a later call may be an excerpt.
    """
    (expected, actual), *later = calls
    rows = compare_outputs(expected, actual, oracle)
    for place, row in enumerate(rows):
        worst: tuple[float, Pair | None] = (row["min_t"], None)
        for pair in later:
            found = _min_t(pair[0][place], pair[1][place])
            if found > worst[0]:
                worst = (found, pair)
        if worst[1] is not None:
            (errors,) = compare_outputs([worst[1][0][place]], [worst[1][1][place]])
            for name in _ERRORS:
                row[name] = errors[name]
        row["constant_t"] = constant_t(
            expected[place], [pair[0][place] for pair in later[:MAX_CONSTANT_CALLS]]
        )
    return rows


_ERRORS = ("max_abs_error", "max_rel_error", "mismatch_share", "is_nonfinite_mismatch", "min_t")


def constant_t(first: Output, later: Sequence[Output]) -> float | None:
    """Return the smallest t at which `first` would pass for each of the later outputs.

    None where there are none; infinity where an output has another shape. An excerpt is held
    against the elements of the first in the same places.

    >>> first, other = Output("float32", np.ones(2, "f4")), Output("float32", np.zeros(2, "f4"))
    >>> constant_t(first, [first]), constant_t(first, [first, other])
    (-inf, 0.0)
    """
    found = []
    for each in later:
        elements = first.elements
        if each.shape != first.shape:
            found.append(math.inf)
            continue
        if each.part is not None:
            elements = elements.reshape(-1)[each.part]
        found.append(_min_t(each, Output(first.dtype, elements)))
    return max(found) if found else None


def _min_t(expected: Output, actual: Output) -> float:
    """Return the smallest t at which one output passes; most are equal bit for bit."""
    left, right = expected.elements, actual.elements
    if left.tobytes() == right.tobytes():
        return -math.inf
    return min_t(right, left, expected.dtype)
