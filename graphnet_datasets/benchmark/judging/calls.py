"""Joint judging of several calls of a run: the worst call counts; stored answers are detected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...scores.formats import decode_wide
from ...scores.tolerance import min_t
from .correctness import Output, compare_outputs, find_wrong_elements

Pair: TypeAlias = tuple[Sequence[Output], Sequence[Output]]
"""The outputs of eager and of the candidate in one call; they differ at most in their elements."""

DECIDED_T = -3.0
"""The tolerance of verdicts. If a stored answer passes at this tolerance, another test must
distinguish it from a correct answer."""
MAX_ASTRAY = 0.75
"""The allowed deviation of a candidate's outputs, as a fraction of how far eager's outputs move
between calls. A stored answer deviates by 1.0. For outputs that move by 2e-6 of their size,
correct candidates deviated by 0.05 in float32. In bfloat16, which cannot resolve such inputs,
they deviated by 1.2."""
ROUNDING = 8
"""The float32 rounding steps by which another summation order moves outputs. Movements of 2e-6 are
larger than this."""
MAX_CONSTANT_CALLS = 16
"""The number of calls used to check whether the first outputs would pass for later calls."""


def compare_calls(
    calls: Sequence[Pair], oracle: Sequence[Output | None] | None = None
) -> list[dict[str, Any]]:
    """Return a row of `OUTPUT_FIELDS` for each output of the first call, with the largest errors.

    The first call contains whole outputs and `oracle` contains its outputs in float64. Later calls
    may contain excerpts. For each output, the errors come from the call with the largest `min_t`.
    """
    (expected, actual), *later = calls
    rows = compare_outputs(expected, actual, oracle)
    for place, row in enumerate(rows):
        worst: tuple[float, Pair | None] = (row["min_t"], None)
        for pair in later:
            call_t = _min_t(pair[0][place], pair[1][place])
            if call_t > worst[0]:
                worst = (call_t, pair)
        if worst[1] is not None:
            (errors,) = compare_outputs([worst[1][0][place]], [worst[1][1][place]])
            for name in _ERRORS:
                row[name] = errors[name]
        row["constant_t"] = constant_t(
            expected[place], [pair[0][place] for pair in later[:MAX_CONSTANT_CALLS]]
        )
    return rows


def find_worst_elements(
    rows: Sequence[Mapping[str, Any]], calls: Sequence[Pair], places: Sequence[int]
) -> tuple[int, list[dict[str, Any]]]:
    """Return the call in which the worst output deviates most, and its wrong elements.

    `rows` are those of `compare_calls`; `places` are the outputs to consider. The elements are
    those of `find_wrong_elements` at `DECIDED_T`, with the number of the output. The list is empty
    if the outputs pass.
    """
    place = max(places, key=lambda place: rows[place]["min_t"], default=None)
    if place is None or rows[place]["min_t"] <= DECIDED_T:
        return 0, []
    pairs = [(expected[place], actual[place]) for expected, actual in calls]
    number = max(range(len(pairs)), key=lambda number: _min_t(*pairs[number]))
    elements = find_wrong_elements(*pairs[number], DECIDED_T)
    return number, [{"output": place} | element for element in elements]


def find_constant(rows: Sequence[Mapping[str, Any]], calls: Sequence[Pair]) -> str | None:
    """Describe outputs that do not follow their inputs, in cases where a stored answer would pass.

    If eager's outputs move so little between calls that the first ones pass everywhere at
    `DECIDED_T`, then passing proves nothing. This function instead compares the differences from
    the first call, the candidate's with eager's. Errors that are the same in all calls cancel out.
    """
    constant_ts = [row["constant_t"] for row in rows if row["constant_t"] is not None]
    if not constant_ts or max(constant_ts) > DECIDED_T:
        return None
    shares = [share for call in calls[1:] if (share := astray(calls[0], call)) is not None]
    num_astray = sum(share > MAX_ASTRAY for share in shares)
    if not num_astray:
        return None
    return (
        f"In {num_astray} of {len(shares)} calls the outputs do not follow their inputs as eager's "
        f"do. They could be a stored answer, which would pass at t = {max(constant_ts):.3g}."
    )


def moves_by_rounding(calls: Sequence[Pair]) -> bool:
    """Return whether eager's outputs move by at most `ROUNDING` float32 steps from the first call.

    Another summation order moves them as far, so a correct candidate cannot be distinguished from
    one that stores its answer.

    >>> def calls(*eager):
    ...     return [([Output("float32", np.array([each], "f4"))], []) for each in eager]
    >>> moves_by_rounding(calls(1.0, 1.0000001)), moves_by_rounding(calls(1.0, 1.001))
    (True, False)
    """
    (first, _), *later = calls
    for outputs, _ in later:
        for then, now in zip(first, outputs, strict=True):
            before, after = (_numbers(outputs, now.part) for outputs in (then, now))
            if before is None or after is None or before.shape != after.shape:
                return False
            size = float(np.sqrt(np.sum(np.abs(after) ** 2)))
            moved = float(np.sqrt(np.sum(np.abs(after - before) ** 2)))
            if not moved <= ROUNDING * float(np.finfo(np.float32).eps) * size:
                return False
    return True


def astray(first: Pair, call: Pair) -> float | None:
    """Return the candidate's deviation as a fraction of eager's movement since the first call.

    Returns None if eager's outputs did not move.

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
    """Return the elements of a part as 8- or 16-byte numbers, or None if they are not floats."""
    if "float" not in output.dtype and "complex" not in output.dtype:
        return None
    elements = output.elements.reshape(-1)
    if output.part is None and part is not None:
        elements = elements[part]
    return decode_wide(elements, output.dtype)


_ERRORS = ("max_abs_error", "max_rel_error", "mismatch_share", "is_nonfinite_mismatch", "min_t")


def constant_t(first: Output, later: Sequence[Output]) -> float | None:
    """Return the smallest t at which `first` would pass for each of the later outputs.

    Returns None without later outputs, and infinity if a shape differs. An excerpt is compared with
    the same elements of the first output.

    >>> first, other = Output("float32", np.ones(2, "f4")), Output("float32", np.zeros(2, "f4"))
    >>> constant_t(first, [first]), constant_t(first, [first, other])
    (-inf, 0.0)
    """
    thresholds = []
    for output in later:
        elements = first.elements
        if output.shape != first.shape:
            thresholds.append(math.inf)
            continue
        if output.part is not None:
            elements = elements.reshape(-1)[output.part]
        thresholds.append(_min_t(output, Output(first.dtype, elements)))
    return max(thresholds) if thresholds else None


def _min_t(expected: Output, actual: Output) -> float:
    """Return the smallest t at which one output passes; most outputs are bit-equal."""
    left, right = expected.elements, actual.elements
    if left.tobytes() == right.tobytes():
        return -math.inf
    return min_t(right, left, expected.dtype)
