"""Repeated calls of an arm on the same inputs with different seeds, for random graphs."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from ...frameworks.outputs import ALIGNMENT, append_described
from ...frameworks.protocols import Runtime
from ...isolation import Reporter
from ..draw_plan import DrawPlan, elements_per_draw
from ..handover import MAX_SET, WRITTEN, DrawnCalls
from .arms import Arm, Workload
from .around_calls import draw_below, draw_set


def complete_plan(plan: DrawPlan | None, workload: Workload, reporter: Reporter) -> DrawPlan | None:
    """Report the names of the inputs that eager changes, and add flags for them to the plan."""
    if plan is None:
        return None
    names = [*workload.written, *workload.state]
    reporter.send({WRITTEN: names})
    return plan.with_written(names)


def choose_draws(plan: DrawPlan, sizes: list[int], num_sets: int) -> DrawnCalls | None:
    """Return the calls by which random outputs of `sizes` elements are judged, or None.

    Their input set is random, so an earlier call is unlikely to have used it.
    """
    count = plan.count(sizes)
    if count == 0:
        return None
    return DrawnCalls(draw_set(num_sets), draw_below(MAX_SET), count, elements_per_draw(count))


def hand_over_draws(
    arm: Arm, runtime: Runtime, reporter: Reporter, path: Path, calls: DrawnCalls, name: str
) -> None:
    """Call an arm repeatedly, write its outputs to `path` and send a message `name` about them.

    The message contains no description if dtypes or shapes differ between calls.

    Raises:
        OutputTypeError: an output is not a plain dense tensor or a number.
    """
    first = None
    with path.open("wb") as file:
        for draw in range(1, calls.count + 1):
            arm.prepare(calls.set_index, draw)
            arm()
            excerpt = runtime.excerpt(arm.results(), calls.start, calls.most)
            began = file.tell()
            described = append_described(excerpt, file)
            end = -(-file.tell() // ALIGNMENT) * ALIGNMENT
            file.truncate(end)
            file.seek(end, os.SEEK_SET)
            layout = [{**output, "offset": output["offset"] - began} for output in described]
            first = layout if first is None else first
            if layout != first:
                reporter.send({name: {**dataclasses.asdict(calls), "described": None}})
                return
    reporter.send({name: {**dataclasses.asdict(calls), "described": first}})
