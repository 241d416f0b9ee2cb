"""Timing two arms as interleaved pairs, until the reported interval is narrow enough.

The pair is the unit of every statistic: both arms are called once, in an order that is drawn and
balanced over each four pairs, so that whatever slows the machine for longer than a call slows both.
Raw times are kept in order; nothing is removed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from ..errors import RunError
from ..isolation import StampSender
from .calls import ARMS, AfterEach, BeforeEach, Call, Calls, no_garbage_collection
from .clocks import Clock
from .usage import describe_machine, read_machine

StoppedBy: TypeAlias = Literal["precision", "noise_stable", "max_pairs", "budget", "hard_budget"]

_LOOK_GROWTH = 1.25
_STABLE_LOOKS = 4


@dataclasses.dataclass(frozen=True, slots=True)
class TimingSettings:
    """When to warm up, for how long to measure, and when to stop.

    `precision`: relative half width of the 95 % interval of the speedup at which to stop; 1 % is
    about what a quiet machine reaches in 10 to 50 pairs.
    `min_pairs`: fewer give an interval whose own width is a matter of luck.
    `budget_s`: measuring time per sample after which no more pairs are begun, once there are
    `min_pairs`; `hard_budget_s` holds even then, once there are three. A fifth of a second is 12
    to 80 pairs of a small graph, whose interval then is ±1 to 3 % on a quiet machine: about what
    differs from process to process anyway, and no more pairs tell (docs/measuring.md).
    `stable_pairs`: from that many on, noise whose size has settled within
    `stable_tolerance` over four looks ends the measurement if it shows that `precision` is out of
    reach of `max_pairs` and `budget_s`: the noise is known, and waiting would not help.
    `warmup_s`, `min_warmup_calls`: each arm's, after compilation has come to rest, for which it
    gets `max_warmup_s`. Eager has been called a dozen times before.
    """

    precision: float = 0.01
    min_pairs: int = 10
    max_pairs: int = 2000
    budget_s: float = 0.2
    hard_budget_s: float = 60.0
    stable_pairs: int = 60
    stable_tolerance: float = 0.05
    warmup_s: float = 0.03
    min_warmup_calls: int = 3
    max_warmup_s: float = 30.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.min_pairs < 3 or self.max_pairs < self.min_pairs or self.precision <= 0:
            raise RunError(
                "Timing needs `min_pairs` of at least 3, `max_pairs` of at least `min_pairs` and "
                f"a positive `precision`; got {self.min_pairs}, {self.max_pairs} and "
                f"{self.precision}."
            )


@dataclasses.dataclass(frozen=True, slots=True)
class PairedTimes:
    """The times of both arms, pair by pair, in milliseconds, and what follows from them.

    `baseline_wall_ms` and `candidate_wall_ms` are of the same calls by the wall clock, `*_cpu_ms`
    by the processor time of the process, and `*_preemptions` counts how often the kernel took a
    processor away from them. `machine` is what else happened meanwhile (`usage.describe_machine`).
    """

    baseline_ms: tuple[float, ...]
    candidate_ms: tuple[float, ...]
    is_candidate_first: tuple[bool, ...]
    baseline_wall_ms: tuple[float, ...]
    candidate_wall_ms: tuple[float, ...]
    baseline_cpu_ms: tuple[float, ...]
    candidate_cpu_ms: tuple[float, ...]
    baseline_preemptions: tuple[int, ...]
    candidate_preemptions: tuple[int, ...]
    machine: dict[str, Any]
    clock: str
    stopped_by: StoppedBy
    speedup: float
    speedup_low: float | None
    speedup_high: float | None
    first_call_s: float
    num_warmup_calls: int
    num_recompilations: int
    duration_s: float
    warnings: tuple[str, ...] = ()


def measure_pairs(
    baseline: Call,
    candidate: Call,
    *,
    settings: TimingSettings,
    clock: Clock,
    before_each: BeforeEach | None = None,
    after_each: AfterEach | None = None,
    num_compilations: Callable[[], int] | None = None,
    evict_caches: Callable[[], None] | None = None,
    stamps: StampSender | None = None,
    on_begin: Callable[[Calls], None] | None = None,
) -> PairedTimes:
    """Warm both arms up, time them in interleaved pairs, and stop by the settings.

    Outside the timed window `before_each(arm, pair)` lays out inputs and seeds, and
    `after_each(arm, pair, result)` looks at what a timed call gave; `pair` is -1 while warming
    up. `num_compilations()` counts what was compiled so far, by both arms. `evict_caches()` comes
    last before each call that is timed (`caches.make_evictor`); without it caches are warm.
    `stamps` has the kernel note the moments directly around each timed call, for whoever reads them
    and trusts no clock of this process: labels `+ARM PAIR` and `-ARM PAIR`.
    `on_begin` is given what makes the calls, before the first of them.

    Pairs of which the kernel interrupted a call count only where there are too few others
    (`disturbance.paired_speedup`); more pairs are timed in their place.

    The interval is looked at after `min_pairs` pairs and then each time their number has grown by
    a quarter, not after every pair: the fewer looks, the less a lucky one narrows the interval.
    The effect of the order within a pair is taken out (`intervals.balanced_interval`). Simulated
    for normal and heavy-tailed noise with such an effect of 1 %, an interval that ends by this rule
    misses the truth in 4.3 to 5.6 % of runs (`benchmarks/aa.py` measures it).

    Raises:
        ArmFailedError: an arm raised.
    """
    started_s = clock.now_s()
    run = Calls(baseline, candidate, clock, before_each, after_each, evict_caches, stamps)
    if on_begin is not None:
        on_begin(run)
    count = num_compilations or (lambda: 0)
    with no_garbage_collection():
        first_call_s, num_warmup_calls, warnings = _warm_up(run, settings, count)
        num_compiled = count()
        machine = read_machine()
        stopped_by = _measure(run, settings)
        happened = describe_machine(machine, read_machine())
    num_recompilations = count() - num_compiled
    if num_recompilations:
        warnings.append(f"recompiled {num_recompilations} times while being timed")
    speedup = run.speedup()
    usage = {arm: tuple(zip(*run.usage[arm], strict=True)) for arm in ARMS}
    return PairedTimes(
        baseline_ms=tuple(run.times["baseline"]),
        candidate_ms=tuple(run.times["candidate"]),
        is_candidate_first=tuple(run.is_candidate_first),
        baseline_wall_ms=tuple(run.wall_times["baseline"]),
        candidate_wall_ms=tuple(run.wall_times["candidate"]),
        baseline_preemptions=usage["baseline"][0],
        candidate_preemptions=usage["candidate"][0],
        baseline_cpu_ms=usage["baseline"][1],
        candidate_cpu_ms=usage["candidate"][1],
        machine=happened,
        clock=clock.name,
        stopped_by=stopped_by,
        speedup=speedup.speedup,
        speedup_low=speedup.low,
        speedup_high=speedup.high,
        first_call_s=first_call_s,
        num_warmup_calls=num_warmup_calls,
        num_recompilations=num_recompilations,
        duration_s=clock.now_s() - started_s,
        warnings=tuple(warnings),
    )


def break_even_calls(
    compile_time_s: float, baseline_ms: Sequence[float], candidate_ms: Sequence[float]
) -> int | None:
    """Return after how many calls compiling has paid for itself, or None if it never does.

    >>> break_even_calls(1.0, [3.0], [1.0])
    500
    """
    saved_ms = _median(baseline_ms) - _median(candidate_ms)
    return math.ceil(compile_time_s * 1000 / saved_ms) if saved_ms > 0 else None


def _warm_up(
    run: Calls, settings: TimingSettings, num_compilations: Callable[[], int]
) -> tuple[float, int, list[str]]:
    """Call until nothing new is compiled, then for `warmup_s`; return first call, calls, notes."""
    clock = run.clock
    started_s = clock.now_s()
    warnings = []
    first_call_s = run.call("candidate", -1)[0].elapsed_ms / 1000
    num_calls = 1
    while True:
        compiled_before = num_compilations()
        run.call("candidate", -1)
        num_calls += 1
        if num_compilations() == compiled_before:
            break
        if clock.now_s() - started_s > settings.max_warmup_s:
            warnings.append("still compiling when the warm-up ended")
            break
    rested_s = clock.now_s()
    num_calls_of_each = 0
    while clock.now_s() - started_s < settings.max_warmup_s or num_calls_of_each == 0:
        elapsed_s = clock.now_s() - rested_s
        # Both arms share the time.
        if num_calls_of_each >= settings.min_warmup_calls and elapsed_s >= 2 * settings.warmup_s:
            break
        run.call("baseline", -1)
        run.call("candidate", -1)
        num_calls_of_each += 1
    return first_call_s, num_calls + num_calls_of_each, warnings


def _measure(run: Calls, settings: TimingSettings) -> StoppedBy:
    clock = run.clock
    orders = _orders(settings.seed)
    noises: list[float] = []
    next_look = settings.min_pairs
    started_s = clock.now_s()
    for count in itertools.count(1):
        run.pair(count - 1, next(orders))
        elapsed_s = clock.now_s() - started_s
        if count >= next_look:
            next_look = max(next_look + 1, math.ceil(next_look * _LOOK_GROWTH))
            seen = run.speedup()
            assert seen.low is not None  # noqa: S101 (three pairs always give an interval)
            assert seen.high is not None  # noqa: S101
            excess = math.log(seen.high / seen.low) / 2 / math.log1p(settings.precision)
            if excess <= 1:
                return "precision"
            # The width falls with the root of the number of pairs.
            noises.append(excess * math.sqrt(count))
            is_out_of_reach = (
                count * excess**2 > settings.max_pairs or elapsed_s * excess**2 > settings.budget_s
            )
            is_known = count >= settings.stable_pairs and _is_stable(noises, settings)
            if is_known and is_out_of_reach:
                return "noise_stable"
        if count >= settings.max_pairs:
            return "max_pairs"
        if count >= settings.min_pairs and elapsed_s >= settings.budget_s:
            return "budget"
        if count >= 3 and elapsed_s >= settings.hard_budget_s:
            return "hard_budget"
    raise AssertionError("There is no end to counting.")


def _orders(seed: int) -> Iterator[bool]:
    """Yield for each pair whether the candidate is first: as often as not in each four pairs."""
    draws = random.Random(seed)  # noqa: S311 - an order of calls is no secret
    while True:
        four = [True, True, False, False]
        draws.shuffle(four)
        yield from four


def _is_stable(noises: Sequence[float], settings: TimingSettings) -> bool:
    recent = noises[-_STABLE_LOOKS:]
    return len(recent) == _STABLE_LOOKS and max(recent) <= min(recent) * (
        1 + settings.stable_tolerance
    )


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
