"""Timing one arm alone in its process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..frameworks.protocols import Clock
from .calls import AfterEach, BeforeEach, Call, Calls, no_garbage_collection
from .pairs import TimingSettings
from .usage import describe_machine, read_machine

ALONE_BUDGET_S = 0.2
"""Time budget of `measure_alone` once 10 calls have been timed."""


@dataclasses.dataclass(frozen=True, slots=True)
class AloneTimes:
    """The call times of one arm alone, in milliseconds, and the preemptions of each call."""

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
    """Time one arm without the other arm in the process.

    Up to `num_calls` calls are timed. The first 10 calls are limited only by
    `settings.hard_budget_s`; after that, measuring stops after `ALONE_BUDGET_S`. Comparing these
    times with the baseline's times next to the candidate shows whether the candidate's runtime
    slows eager down.
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
        activity = describe_machine(machine, read_machine())
        return AloneTimes(tuple(times), tuple(preemptions), activity)
