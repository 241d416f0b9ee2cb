"""Timing two arms as interleaved pairs until the reported interval is narrow enough.

Every statistic uses the pair as its unit. A pair calls both arms once, in a random order that is
balanced over every four pairs. Slowdowns that last longer than a call therefore affect both arms.
Raw times are stored in order and none are removed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from ..errors import RunError
from ..frameworks.protocols import Clock
from ..isolation import StampSender
from .calls import ARMS, AfterEach, BeforeEach, Call, Calls, no_garbage_collection
from .usage import describe_machine, read_machine

StoppedBy: TypeAlias = Literal["precision", "noise_stable", "max_pairs", "budget", "hard_budget"]

_LOOK_GROWTH = 1.25
_STABLE_LOOKS = 4


@dataclasses.dataclass(frozen=True, slots=True)
class TimingSettings:
    """Warm-up, measuring time and stopping rule.

    `precision`: the relative half width of the speedup's 95 % interval at which to stop. A quiet
    machine reaches 1 % in 10 to 50 pairs. `min_pairs`: with fewer pairs, the width of the interval
    is mostly chance. `budget_s`: the measuring time per sample after which no further pair starts,
    once there are `min_pairs`. `hard_budget_s` applies as soon as there are three pairs. A fifth of
    a second covers 12 to 80 pairs of a small graph and gives an interval of ±1 to 3 % on a quiet
    machine. Processes differ by about as much, so more pairs would not help (docs/measuring.md).
    `stable_pairs`: from this number of pairs on, measuring stops if the noise has varied by at most
    `stable_tolerance` over four checks and `precision` is out of reach of `max_pairs` and
    `budget_s`. `warmup_s`, `min_warmup_calls`: the warm-up of each arm after compilation has
    settled, for at most `max_warmup_s`. Eager has run a dozen times before this.
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
    """The times of both arms, pair by pair, in milliseconds, and the statistics derived from them.

    For the same calls, `*_wall_ms` are wall-clock times, `*_cpu_ms` are processor times of the
    process and `*_preemptions` count involuntary context switches. `machine` describes the
    machine's activity during the measurement (`usage.describe_machine`).
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
    """Warm up both arms and time them in interleaved pairs until the stopping rule is met.

    `before_each(arm, pair)` prepares inputs and seeds outside of the timed window, and
    `after_each(arm, pair, result)` inspects the result of a timed call; `pair` is -1 during
    warm-up. `num_compilations()` returns the number of compilations so far, over both arms.
    `evict_caches()` runs last before each timed call (`caches.make_evictor`); without it caches are
    warm. `stamps` makes the kernel record the moments directly before and after each timed call,
    labeled `+ARM PAIR` and `-ARM PAIR`, for readers that do not trust the clocks of this process.
    `on_begin` receives the `Calls` object before the first call.

    Pairs with a preempted call count only if there are too few others
    (`disturbance.paired_speedup`); additional pairs are timed in their place.

    The interval is checked after `min_pairs` pairs and then whenever the number of pairs has grown
    by a quarter. Fewer checks reduce the bias from stopping at an interval that is narrow by
    chance. The effect of the order within a pair is removed (`intervals.balanced_interval`). In
    simulations with normal and heavy-tailed noise and an order effect of 1 %, the final interval
    misses the true value in 4.3 to 5.6 % of runs (`benchmarks/aa.py` measures this).

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
        activity = describe_machine(machine, read_machine())
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
        machine=activity,
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
    """Return the number of calls after which compilation has paid off, or None if it never does.

    >>> break_even_calls(1.0, [3.0], [1.0])
    500
    """
    saved_ms = _median(baseline_ms) - _median(candidate_ms)
    return math.ceil(compile_time_s * 1000 / saved_ms) if saved_ms > 0 else None


def _warm_up(
    run: Calls, settings: TimingSettings, num_compilations: Callable[[], int]
) -> tuple[float, int, list[str]]:
    """Call until compilation has settled, then for `warmup_s`.

    Returns the seconds of the first call, the number of warm-up calls and warnings.
    """
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
        # Both arms share this time.
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
            estimate = run.speedup()
            assert estimate.low is not None  # noqa: S101 (three pairs always give an interval)
            assert estimate.high is not None  # noqa: S101
            excess = math.log(estimate.high / estimate.low) / 2 / math.log1p(settings.precision)
            if excess <= 1:
                return "precision"
            # The width is proportional to 1 / sqrt(count).
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
    raise AssertionError("`itertools.count` does not end.")


def _orders(seed: int) -> Iterator[bool]:
    """Yield whether the candidate runs first: in two random pairs of every four."""
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
