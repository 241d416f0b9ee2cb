"""Calls that the parent times too, so that a candidate cannot choose its times.

The candidate runs in the process that times it, and could forge what that process reports. So
after the timed pairs it is called in a few short blocks, and each block begins and ends with a mark
on the result pipe, which the parent notes by its own clock. That clock is coarse, for the parent
may be kept waiting by a busy machine, but it is out of reach: reported times that would make the
quickest block several times shorter than the parent saw it are not believed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ..isolation import Reporter
from .arms import Arm
from .clocks import Clock, WallClock
from .timed_calls import TimedCalls

NUM_BLOCKS = 2
BLOCK_S = 0.06
"""Long enough to stand out against `SLACK_S`, short enough to be no burden."""
MAX_CALLS = 5000
"""Calls after which a block ends if the clock in the candidate's process stands still."""
SLACK_S = 0.04
"""How much later than the worker the parent may see a mark on a busy machine."""
FACTOR = 3.0
"""How much slower than the median of the timed calls an honest block may be."""

_now_s = WallClock().now_s


def audit(
    candidate: Arm, timed: TimedCalls, clock: Clock, reporter: Reporter, *, is_repeatable: bool
) -> None:
    """Call the candidate in blocks between two marks each.

    A block is one call where a call changes its own inputs, which `is_repeatable` denies.
    """
    num_calls = []
    for block in range(NUM_BLOCKS):
        candidate.prepare(timed.draw_set())
        reporter.mark(begin_mark(block))
        started_s = _now_s()
        count = 0
        # Through the clock, as in a timed pair: the candidate sees the same callers.
        while count == 0 or (
            is_repeatable and count < MAX_CALLS and _now_s() - started_s < BLOCK_S
        ):
            clock.measure(candidate)
            count += 1
        reporter.mark(end_mark(block))
        num_calls.append(count)
    reporter.send({"audited_calls": num_calls})


def begin_mark(block: int) -> str:
    """Return the name of the mark with which a block begins."""
    return f"block {block} begins"


def end_mark(block: int) -> str:
    """Return the name of the mark with which a block ends."""
    return f"block {block} ends"


def find_contradiction(
    candidate_ms: Sequence[float],
    baseline_ms: Sequence[float],
    audited_calls: Any,
    marks_s: Mapping[str, float],
    run_s: float,
) -> str | None:
    """Return what the reported times of a run contradict, or None if the parent saw them so.

    `marks_s` and `run_s`, how long the whole phase was, are by the parent's clock.

    >>> marks_s = {"block 0 begins": 1.0, "block 0 ends": 2.0}
    >>> find_contradiction([10.0], [10.0], [100], marks_s, 5.0) is None
    True
    >>> find_contradiction([0.1], [10.0], [100], marks_s, 5.0)
    '100 calls took 1 s by the clock of the parent, but 0.1 ms each by what was reported.'
    """
    reported_s = (sum(candidate_ms) + sum(baseline_ms)) / 1000
    if reported_s > 1.1 * run_s + SLACK_S:
        return (
            f"The times of the calls add up to {reported_s:.3g} s, but the run took {run_s:.3g} s."
        )
    median_ms = statistics.median(candidate_ms)
    if not isinstance(audited_calls, list) or not 0 < len(audited_calls) <= NUM_BLOCKS:
        return "The worker did not report the calls that the parent timed."
    seen: list[tuple[int, float]] = []
    for block, count in enumerate(audited_calls):
        began, ended = marks_s.get(begin_mark(block)), marks_s.get(end_mark(block))
        if began is None or ended is None or type(count) is not int or count < 1:
            return "The worker did not report the calls that the parent timed."
        if ended - began <= FACTOR * count * median_ms / 1000 + SLACK_S:
            return None
        seen.append((count, ended - began))
    count, took_s = min(seen, key=lambda each: each[1] / each[0])
    return (
        f"{count} calls took {took_s:.3g} s by the clock of the parent, but {median_ms:.3g} ms "
        "each by what was reported."
    )
