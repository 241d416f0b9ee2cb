"""Timing one arm with nothing else in its process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .calls import AfterEach, BeforeEach, Call, Calls, no_garbage_collection
from .clocks import Clock
from .pairs import TimingSettings
from .usage import describe_machine, read_machine

ALONE_BUDGET_S = 0.2
"""Time for the calls of `measure_alone` beyond the tenth."""


@dataclasses.dataclass(frozen=True, slots=True)
class AloneTimes:
    """The times in milliseconds of one arm by itself, and how often each call was preempted."""

    times_ms: tuple[float, ...]
    preemptions: tuple[int, ...]
    machine: dict[str, Any]


def measure_alone(
    call: Call,
    *,
    settings: TimingSettings,
    clock: Clock,
    before_each: BeforeEach | None = None,
    after_each: AfterEach | None = None,
    evict_caches: Callable[[], None] | None = None,
    num_calls: int = 10,
) -> AloneTimes:
    """Time one arm with nothing else in the process.

    There are `num_calls` of them; from the tenth on fewer where those take longer than
    `ALONE_BUDGET_S`, and in any case where they take longer than `settings.hard_budget_s`. Against
    these an eager arm that the candidate's runtime disturbs is recognised.
    """
    run = Calls(call, call, clock, before_each, after_each, evict_caches)
    with no_garbage_collection():
        started_s = clock.now_s()
        warmup_calls = 0
        while (
            clock.now_s() - started_s < settings.warmup_s
            or warmup_calls < settings.min_warmup_calls
        ) and (warmup_calls < 1 or clock.now_s() - started_s < settings.max_warmup_s):
            run.call("baseline", -1)
            warmup_calls += 1
        times: list[float] = []
        preemptions: list[int] = []
        machine, measured_s = read_machine(), clock.now_s()
        while len(times) < num_calls:
            elapsed_s = clock.now_s() - measured_s
            if elapsed_s >= (ALONE_BUDGET_S if len(times) >= 10 else settings.hard_budget_s):
                break
            reading, usage = run.call("baseline", len(times))
            times.append(reading.elapsed_ms)
            preemptions.append(usage.num_preemptions)
        happened = describe_machine(machine, read_machine())
        return AloneTimes(tuple(times), tuple(preemptions), happened)
