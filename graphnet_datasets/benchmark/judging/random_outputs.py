"""Judging of the random outputs of a record."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..draw_plan import DrawPlan
from .calls import DECIDED_T, Pair
from .correctness import Drawn, Output
from .draws import LEVEL, Draws, DrawVerdict, judge_calls, judge_draws, stored_draw

SAME_STREAM = "same stream"
"""The test name for an output that agrees with eager's in each call: both drew the same numbers."""
RANDOM_SHAPES = "The outputs are random, and their shapes differ from draw to draw."
MAX_TIMED_CALLS = 128
MAX_TIMED_ELEMENTS = 2**12
_OF_EQUAL_DRAWS = (
    "max_abs_error",
    "max_rel_error",
    "mismatch_share",
    "rmse_baseline",
    "rmse_candidate",
    "null_mean_t",
)


@dataclasses.dataclass
class RandomVerdict:
    """The verdict on the random outputs of a record.

    `places` are the outputs judged by their distribution. `undecidable_reason` is a sentence if no
    verdict is possible. `warnings` contains a sentence for each wrong output.
    """

    is_random: bool = False
    places: frozenset[int] = frozenset()
    undecidable_reason: str | None = None
    warnings: list[str] = dataclasses.field(default_factory=list)


def judge_random_outputs(
    rows: list[dict[str, Any]],
    calls: Sequence[Pair],
    plan: DrawPlan,
    candidate: Sequence[Drawn] | None,
    eager: Sequence[Drawn] | None,
) -> RandomVerdict:
    """Judge the random outputs, write the results to their rows and return the verdict.

    Outputs that agree with eager's at t = -3 in every call keep their rows. For the others, `min_t`
    is infinity if the distributions differ. Otherwise it is the smallest t at which elements that
    take few values agree with eager's, or -inf without such elements. No control passes at any t,
    so `null_t` and `constant_t` are infinity.

    Args:
        rows: rows of all outputs, compared element by element.
        calls: outputs of both arms in calls on different inputs.
        plan: the plan of the draws.
        candidate: the candidate's outputs in repeated calls, or None without such calls or with
            shapes that differ between calls.
        eager: eager's outputs in the same calls and in `FURTHER_DRAWS` more.
    """
    verdict = RandomVerdict()
    listed = plan.outputs if len(plan.outputs) <= len(rows) else ()
    places = []
    for place, row in enumerate(rows):
        may_vary = listed[place] if place < len(listed) else True
        varies = eager is not None and _varies(eager[place])
        row["is_random"] = varies or (may_vary and eager is None)
        if not (varies or may_vary):
            continue
        if row["min_t"] is not None and row["min_t"] <= DECIDED_T:
            row["random_test"] = SAME_STREAM if row["is_random"] else None
            continue
        row["is_random"] = True
        places.append(place)
    verdict.is_random = any(row["is_random"] for row in rows)
    verdict.places = frozenset(places)
    if not places:
        return verdict
    for place in places:
        rows[place] |= dict.fromkeys(_OF_EQUAL_DRAWS)
        rows[place] |= {"null_t": math.inf, "constant_t": math.inf, "min_t": -math.inf}
    if eager is None:
        verdict.undecidable_reason = _why_no_draws(rows, plan)
        return verdict
    draws = {
        place: None if candidate is None else _draws(candidate[place], eager[place])
        for place in places
    }
    changed = [place for place in places if draws[place] is None]
    for place in changed:
        rows[place] |= {"random_test": "shape", "p_value": 0.0, "min_t": math.inf}
        verdict.warnings.append(
            f"random_output: output {place} has another shape or dtype in repeated calls."
        )
    comparable = {place: own for place, own in draws.items() if own is not None}
    of_draws = judge_draws(list(comparable.values()))
    level = LEVEL / len(places)
    for (place, own), of_own in zip(comparable.items(), of_draws, strict=True):
        combined = _combine(of_own, judge_calls(_thinned(calls, place)))
        is_wrong = combined.p_value < level
        rows[place] |= {
            "random_test": combined.test,
            "p_value": combined.p_value,
            "min_t": math.inf if is_wrong else of_own.min_t,
        }
        if is_wrong:
            verdict.warnings.append(
                f"random_output: output {place} does not have the distribution of eager's. The "
                f"test `{combined.test}` has p = {combined.p_value:.2g} after correction for the "
                "number of tests."
            )
        elif judge_draws([stored_draw(own)])[0].p_value >= level:
            verdict.undecidable_reason = (
                f"The test does not distinguish {len(own.eager)} draws of output {place} from one "
                "draw of eager that repeats."
            )
    if verdict.warnings:
        verdict.undecidable_reason = None
    return verdict


def _combine(of_draws: DrawVerdict, of_calls: DrawVerdict) -> DrawVerdict:
    """Return the verdict with the smaller p-value, corrected for two tests."""
    smaller = min(of_draws, of_calls, key=lambda verdict: verdict.p_value)
    return dataclasses.replace(smaller, p_value=min(1.0, 2 * smaller.p_value))


def _varies(drawn: Drawn) -> bool:
    first = drawn.elements[:1].tobytes()
    return any(draw.tobytes() != first for draw in drawn.elements)


def _draws(candidate: Drawn, eager: Drawn) -> Draws | None:
    """Return the draws of both arms, or None if dtypes or shapes differ."""
    if (candidate.dtype, candidate.shape) != (eager.dtype, eager.shape):
        return None
    count = len(candidate.elements)
    return Draws(
        eager.dtype,
        eager.shape,
        eager.elements[:count],
        candidate.elements,
        eager.elements[count:],
        eager.step,
    )


def _thinned(calls: Sequence[Pair], place: int) -> list[tuple[Output, Output]]:
    """Return a subset of the elements of one output in a subset of the calls."""
    thinned = []
    for pair in calls[:MAX_TIMED_CALLS]:
        step = max(1, pair[0][place].elements.size // MAX_TIMED_ELEMENTS)
        eager, candidate = (
            Output(side[place].dtype, np.ravel(side[place].elements)[::step]) for side in pair
        )
        thinned.append((eager, candidate))
    return thinned


def _why_no_draws(rows: Sequence[dict[str, Any]], plan: DrawPlan) -> str:
    if plan.count([max(1, row["num_elements"] or 0) for row in rows]) == 0:
        return (
            f"The outputs are random, and repeating calls of {plan.work:.2g} floating-point "
            "operations would take too much work."
        )
    return RANDOM_SHAPES
