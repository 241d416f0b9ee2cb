"""Timing two arms as interleaved pairs, until the reported interval is narrow enough.

The pair is the unit of every statistic: both arms are called once, in an order that is drawn and
balanced over each four pairs, so that whatever slows the machine for longer than a call slows both.
Raw times are kept in order; nothing is removed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from ..errors import RunError
from .clocks import Clock, Reading
from .intervals import balanced_interval, speedup_interval

Arm: TypeAlias = Literal["baseline", "candidate"]
Call: TypeAlias = Callable[[], Any]
BeforeEach: TypeAlias = Callable[[Arm, int], None]
AfterEach: TypeAlias = Callable[[Arm, int, Any], None]
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
    `min_pairs`; `hard_budget_s` holds even then, once there are three.
    `stable_pairs`: from that many on, noise whose size has settled within
    `stable_tolerance` over four looks ends the measurement if it shows that `precision` is out of
    reach of `max_pairs` and `budget_s`: the noise is known, and waiting would not help.
    `warmup_s`, `min_warmup_calls`: each arm's, after compilation has come to rest, for which it
    gets `max_warmup_s`.
    """

    precision: float = 0.01
    min_pairs: int = 10
    max_pairs: int = 2000
    budget_s: float = 10.0
    hard_budget_s: float = 60.0
    stable_pairs: int = 60
    stable_tolerance: float = 0.05
    warmup_s: float = 0.2
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


class ArmFailedError(RunError):
    """An arm raised while it was warmed up or timed; the cause is the error that it raised."""

    def __init__(self, arm: Arm, pair: int, cause: BaseException) -> None:
        when = f"in pair {pair}" if pair >= 0 else "while warming up"
        super().__init__(f"The {arm} raised {type(cause).__name__} {when}.")
        self.arm = arm
        self.pair = pair


@dataclasses.dataclass(frozen=True, slots=True)
class PairedTimes:
    """The times of both arms, pair by pair, in milliseconds, and what follows from them.

    `baseline_wall_ms` and `candidate_wall_ms` are of the same calls by the wall clock.
    """

    baseline_ms: tuple[float, ...]
    candidate_ms: tuple[float, ...]
    is_candidate_first: tuple[bool, ...]
    baseline_wall_ms: tuple[float, ...]
    candidate_wall_ms: tuple[float, ...]
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
) -> PairedTimes:
    """Warm both arms up, time them in interleaved pairs, and stop by the settings.

    Outside the timed window `before_each(arm, pair)` lays out inputs and seeds, and
    `after_each(arm, pair, result)` looks at what a timed call gave; `pair` is -1 while warming
    up. `num_compilations()` counts what was compiled so far, by both arms. `evict_caches()` comes
    last before each call that is timed (`caches.make_evictor`); without it caches are warm.

    The interval is looked at after `min_pairs` pairs and then each time their number has grown by
    a quarter, not after every pair: the fewer looks, the less a lucky one narrows the interval.
    The effect of the order within a pair is taken out (`intervals.balanced_interval`). Simulated
    for normal and heavy-tailed noise with such an effect of 1 %, an interval that ends by this rule
    misses the truth in 4.3 to 5.6 % of runs (`benchmarks/aa.py` measures it).

    Raises:
        ArmFailedError: an arm raised.
    """
    started_s = clock.now_s()
    run = _Run(baseline, candidate, clock, before_each, after_each, evict_caches)
    count = num_compilations or (lambda: 0)
    with _no_garbage_collection():
        first_call_s, num_warmup_calls, warnings = _warm_up(run, settings, count)
        num_compiled = count()
        stopped_by = _measure(run, settings)
    num_recompilations = count() - num_compiled
    if num_recompilations:
        warnings.append(f"recompiled {num_recompilations} times while being timed")
    return PairedTimes(
        tuple(run.times["baseline"]),
        tuple(run.times["candidate"]),
        tuple(run.is_candidate_first),
        tuple(run.wall_times["baseline"]),
        tuple(run.wall_times["candidate"]),
        clock.name,
        stopped_by,
        *speedup_interval(run.times["baseline"], run.times["candidate"], run.is_candidate_first),
        first_call_s,
        num_warmup_calls,
        num_recompilations,
        clock.now_s() - started_s,
        tuple(warnings),
    )


def measure_alone(
    call: Call,
    *,
    settings: TimingSettings,
    clock: Clock,
    before_each: BeforeEach | None = None,
    evict_caches: Callable[[], None] | None = None,
    num_calls: int = 10,
) -> tuple[float, ...]:
    """Return the times in milliseconds of one arm with nothing else in the process.

    There are `num_calls` of them, fewer where those take longer than `settings.hard_budget_s`.
    Against these an eager arm that the candidate's runtime disturbs is recognised.
    """
    run = _Run(call, call, clock, before_each, evict_caches=evict_caches)
    with _no_garbage_collection():
        started_s = clock.now_s()
        warmup_calls = 0
        while (
            clock.now_s() - started_s < settings.warmup_s
            or warmup_calls < settings.min_warmup_calls
        ) and (warmup_calls < 1 or clock.now_s() - started_s < settings.max_warmup_s):
            run.call("baseline", -1)
            warmup_calls += 1
        times: list[float] = []
        measured_s = clock.now_s()
        while len(times) < num_calls and (
            not times or clock.now_s() - measured_s < settings.hard_budget_s
        ):
            times.append(run.call("baseline", len(times)).elapsed_ms)
        return tuple(times)


def is_disturbed(paired_ms: Sequence[float], alone_ms: Sequence[float]) -> bool:
    """Tell whether the baseline beside the candidate is more than 10 % slower than alone.

    By medians.

    >>> is_disturbed([20.0, 21.0, 22.0], [1.0, 1.1, 1.2]), is_disturbed([1.05], [1.0])
    (True, False)
    """
    return _median(paired_ms) > 1.1 * _median(alone_ms)


def break_even_calls(
    compile_time_s: float, baseline_ms: Sequence[float], candidate_ms: Sequence[float]
) -> int | None:
    """Return after how many calls compiling has paid for itself, or None if it never does.

    >>> break_even_calls(1.0, [3.0], [1.0])
    500
    """
    saved_ms = _median(baseline_ms) - _median(candidate_ms)
    return math.ceil(compile_time_s * 1000 / saved_ms) if saved_ms > 0 else None


class _Run:
    """Calls arms with the hooks around them and keeps the times."""

    def __init__(
        self,
        baseline: Call,
        candidate: Call,
        clock: Clock,
        before_each: BeforeEach | None,
        after_each: AfterEach | None = None,
        evict_caches: Callable[[], None] | None = None,
    ) -> None:
        self._calls: dict[Arm, Call] = {"baseline": baseline, "candidate": candidate}
        self._before_each = before_each
        self._after_each = after_each
        self._evict_caches = evict_caches
        self.clock = clock
        self.times: dict[Arm, list[float]] = {"baseline": [], "candidate": []}
        self.wall_times: dict[Arm, list[float]] = {"baseline": [], "candidate": []}
        self.is_candidate_first: list[bool] = []

    def call(self, arm: Arm, pair: int) -> Reading:
        if self._before_each is not None:
            self._before_each(arm, pair)
        if self._evict_caches is not None and pair >= 0:
            self._evict_caches()
        try:
            reading = self.clock.measure(self._calls[arm])
        except Exception as error:
            raise ArmFailedError(arm, pair, error) from error
        if self._after_each is not None:
            self._after_each(arm, pair, reading.result)
        return reading

    def pair(self, index: int, is_candidate_first: bool) -> None:
        order: tuple[Arm, Arm] = ("baseline", "candidate")
        for arm in reversed(order) if is_candidate_first else order:
            reading = self.call(arm, index)
            self.times[arm].append(reading.elapsed_ms)
            self.wall_times[arm].append(reading.wall_ms)
        self.is_candidate_first.append(is_candidate_first)


def _warm_up(
    run: _Run, settings: TimingSettings, num_compilations: Callable[[], int]
) -> tuple[float, int, list[str]]:
    """Call until nothing new is compiled, then for `warmup_s`; return first call, calls, notes."""
    clock = run.clock
    started_s = clock.now_s()
    warnings = []
    first_call_s = run.call("candidate", -1).elapsed_ms / 1000
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


def _measure(run: _Run, settings: TimingSettings) -> StoppedBy:
    clock = run.clock
    orders = _orders(settings.seed)
    ratios: list[float] = []
    noises: list[float] = []
    next_look = settings.min_pairs
    started_s = clock.now_s()
    while True:
        run.pair(len(ratios), next(orders))
        ratios.append(math.log(run.times["baseline"][-1] / run.times["candidate"][-1]))
        elapsed_s = clock.now_s() - started_s
        if len(ratios) >= next_look:
            next_look = max(next_look + 1, math.ceil(next_look * _LOOK_GROWTH))
            _, low, high = balanced_interval(ratios, run.is_candidate_first)
            excess = (high - low) / 2 / math.log1p(settings.precision)
            if excess <= 1:
                return "precision"
            # The width falls with the root of the number of pairs.
            noises.append(excess * math.sqrt(len(ratios)))
            is_out_of_reach = (
                len(ratios) * excess**2 > settings.max_pairs
                or elapsed_s * excess**2 > settings.budget_s
            )
            is_known = len(ratios) >= settings.stable_pairs and _is_stable(noises, settings)
            if is_known and is_out_of_reach:
                return "noise_stable"
        if len(ratios) >= settings.max_pairs:
            return "max_pairs"
        if len(ratios) >= settings.min_pairs and elapsed_s >= settings.budget_s:
            return "budget"
        if len(ratios) >= 3 and elapsed_s >= settings.hard_budget_s:
            return "hard_budget"


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


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep Python's collector out of the timed calls."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
