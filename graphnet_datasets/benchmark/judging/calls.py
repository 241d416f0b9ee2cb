"""Several calls of one run judged together: the worst counts, and a stored answer is told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...scores.formats import decode_wide
from ...scores.tolerance import min_t
from .correctness import Output, compare_outputs

Pair: TypeAlias = tuple[Sequence[Output], Sequence[Output]]
"""The outputs of eager and of the candidate in one call; they differ in their elements at most."""

DECIDED_T = -3.0
"""The tolerance at which verdicts are made: where a stored answer passes there, a right one has to
be told from it in another way."""
MAX_ASTRAY = 0.75
"""Share of what eager's outputs move from call to call by which a candidate's may be astray. One
that returns a stored answer misses all of it, 1.0. Where outputs move by 2e-6 of their size, honest
ones were astray by 0.05 in float32, and by 1.2 in bfloat16, in which the inputs are lost."""
ROUNDING = 8
"""Steps of float32 by which other orders of sums move outputs; of 2e-6 honest ones are told."""
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


def find_constant(rows: Sequence[Mapping[str, Any]], calls: Sequence[Pair]) -> str | None:
    """Say in what the outputs do not follow their inputs, where a stored answer would pass too.

    Where the outputs of eager move so little from call to call that those of the first would pass
    for all at `DECIDED_T`, being right at a tolerance says nothing. There the way is looked at by
    which each call's outputs are away from the first's, the candidate's against eager's: errors
    that are the same in all calls drop out.
    """
    known = [row["constant_t"] for row in rows if row["constant_t"] is not None]
    if not known or max(known) > DECIDED_T:
        return None
    shares = [share for call in calls[1:] if (share := astray(calls[0], call)) is not None]
    num_astray = sum(share > MAX_ASTRAY for share in shares)
    if not num_astray:
        return None
    return (
        f"In {num_astray} of {len(shares)} calls the outputs do not follow their inputs as eager's "
        f"do: what a stored answer would give, which passes here at t = {max(known):.3g}."
    )


def moves_by_rounding(calls: Sequence[Pair]) -> bool:
    """Tell whether eager's outputs move by no more than `ROUNDING` steps of float32 from the first.

    Another order of sums moves them as far, so an honest candidate cannot be told from one that
    stores its answer.

    >>> def calls(*eager):
    ...     return [([Output("float32", np.array([each], "f4"))], []) for each in eager]
    >>> moves_by_rounding(calls(1.0, 1.0000001)), moves_by_rounding(calls(1.0, 1.001))
    (True, False)
    """
    (first, _), *later = calls
    for outputs, _ in later:
        for then, now in zip(first, outputs, strict=True):
            before, after = (_numbers(each, now.part) for each in (then, now))
            if before is None or after is None or before.shape != after.shape:
                return False
            size = float(np.sqrt(np.sum(np.abs(after) ** 2)))
            moved = float(np.sqrt(np.sum(np.abs(after - before) ** 2)))
            if not moved <= ROUNDING * float(np.finfo(np.float32).eps) * size:
                return False
    return True


def astray(first: Pair, call: Pair) -> float | None:
    """Return by what share of eager's move from the first call the candidate's differs from it.

    None where eager's outputs did not move.

    >>> def pair(eager, candidate):
    ...     return [Output("float32", np.array([each], "f4")) for each in (eager, candidate)]
    >>> first = [[each] for each in pair(1.0, 1.0)]
    >>> [astray(first, [[each] for each in pair(1.25, given)]) for given in (1.25, 1.0)]
    [0.0, 1.0]
    """
    missed = moved = 0.0
    for place in range(len(call[0])):
        eager_then, candidate_then, eager_now, candidate_now = (
            _numbers(pair[side][place], call[0][place].part)
            for pair in (first, call)
            for side in (0, 1)
        )
        if eager_now is None or eager_then is None or eager_now.shape != eager_then.shape:
            continue
        if candidate_now is None or candidate_then is None:
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            way = eager_now - eager_then
            difference = candidate_now - candidate_then - way
        is_finite = np.isfinite(way) & np.isfinite(difference)
        missed += float(np.sum(np.abs(difference[is_finite]) ** 2))
        moved += float(np.sum(np.abs(way[is_finite]) ** 2))
    return math.sqrt(missed / moved) if moved else None


def _numbers(output: Output, part: slice | None) -> npt.NDArray | None:
    """Return the elements of a part as numbers of 8 or 16 bytes; None where they are not floats."""
    if "float" not in output.dtype and "complex" not in output.dtype:
        return None
    elements = output.elements.reshape(-1)
    if output.part is None and part is not None:
        elements = elements[part]
    return decode_wide(elements, output.dtype)


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
