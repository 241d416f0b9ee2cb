"""Calls that the parent times too, so that a candidate cannot choose its times.

The candidate runs in the process that times it, and could forge what that process reports. So after
the timed pairs it is called in two short blocks, through the same clock, and each block begins and
ends with a mark on the result pipe, which the parent notes by its own clock. That clock is coarse,
for the parent may be kept waiting by a busy machine, but it is out of reach, and both clocks are
held to the same calls: however noisy the machine, what one of them saw the other saw as well.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ...isolation import Reporter
from ...timing.clocks import Clock, WallClock
from ..judging.reported import read_number
from .arms import Arm
from .timed_calls import TimedCalls

NUM_BLOCKS = 2
BLOCK_S = 0.08
"""Long enough to stand out against `SLACK_S`, short enough to be no burden."""
SLOW_MS = 1000.0
"""A block that takes longer needs no second one: no mark is late by that much."""
MAX_CALLS = 5000
"""Calls after which a block ends if the clock in the candidate's process stands still."""
SLACK_S = 0.05
"""How much later than the worker the parent may see a mark on a busy machine."""
FACTOR = 3.0
"""How much longer than its calls a block may be: there is a little between two short calls."""

_now_s = WallClock().now_s


def audit(
    candidate: Arm, timed: TimedCalls, clock: Clock, reporter: Reporter, *, is_repeatable: bool
) -> None:
    """Call the candidate in blocks between two marks each, and report their calls and times.

    A block is one call where a call changes its own inputs, which `is_repeatable` denies.
    """
    blocks = []
    for block in range(NUM_BLOCKS):
        candidate.prepare(timed.draw_set())
        reporter.mark(begin_mark(block))
        started_s, num_calls, total_ms = _now_s(), 0, 0.0
        # Through the clock, as in a timed pair: the candidate sees the same callers.
        while num_calls == 0 or (
            is_repeatable and num_calls < MAX_CALLS and _now_s() - started_s < BLOCK_S
        ):
            total_ms += clock.measure(candidate).wall_ms
            num_calls += 1
        reporter.mark(end_mark(block))
        blocks.append([num_calls, total_ms])
        if total_ms > SLOW_MS:
            break
    reporter.send({"audited": blocks})


def begin_mark(block: int) -> str:
    """Return the name of the mark with which a block begins."""
    return f"block {block} begins"


def end_mark(block: int) -> str:
    """Return the name of the mark with which a block ends."""
    return f"block {block} ends"


def find_contradiction(
    times_ms: Sequence[float], audited: Any, marks_s: Mapping[str, float], run_s: float
) -> str | None:
    """Return what the reported times of a run contradict, or None if the parent saw them so.

    `times_ms` are those of all timed calls of both arms, `audited` has the calls and the time in
    milliseconds of each block; `marks_s` and `run_s`, how long the whole phase was, are by the
    parent's clock. One block that took as long as was reported is enough.

    >>> marks_s = {"block 0 begins": 1.0, "block 0 ends": 2.0}
    >>> find_contradiction([10.0], [[100, 1000.0]], marks_s, 5.0) is None
    True
    >>> find_contradiction([10.0], [[100, 10.0]], marks_s, 5.0)
    '100 calls took 1 s by the clock of the parent, but 0.01 s by what was reported.'
    """
    reported_s = sum(times_ms) / 1000
    if reported_s > 1.1 * run_s + SLACK_S:
        return (
            f"The times of the calls add up to {reported_s:.3g} s, but the run took {run_s:.3g} s."
        )
    blocks = _read(audited, marks_s)
    if blocks is None:
        return "The worker did not report the calls that the parent timed."
    if any(seen_s <= FACTOR * said_s + SLACK_S for _, said_s, seen_s in blocks):
        return None
    num_calls, said_s, seen_s = blocks[0]
    return (
        f"{num_calls} calls took {seen_s:.3g} s by the clock of the parent, but {said_s:.3g} s by "
        "what was reported."
    )


def is_slower_than_timed(audited: Any, candidate_ms: Sequence[float]) -> bool:
    """Tell whether every block's calls took more than three times the median of the timed ones.

    A machine that got busy does that, and so does a candidate that knows when it is timed.

    >>> is_slower_than_timed([[10, 100.0], [10, 90.0]], [1.0, 1.0])
    True
    """
    most_ms = FACTOR * statistics.median(candidate_ms)
    return all(total_ms / num_calls > most_ms for num_calls, total_ms in audited)


def _read(audited: Any, marks_s: Mapping[str, float]) -> list[tuple[int, float, float]] | None:
    """Return calls, seconds reported and seconds seen of each block; None if they are no blocks."""
    if not isinstance(audited, list) or not 0 < len(audited) <= NUM_BLOCKS:
        return None
    blocks = []
    for block, each in enumerate(audited):
        began, ended = marks_s.get(begin_mark(block)), marks_s.get(end_mark(block))
        if not isinstance(each, list) or len(each) != 2 or began is None or ended is None:
            return None
        num_calls, total_ms = each
        if type(num_calls) is not int or num_calls < 1 or read_number(total_ms) is None:
            return None
        blocks.append((num_calls, total_ms / 1000, ended - began))
    return blocks
