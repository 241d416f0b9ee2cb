"""Warm-up, pairs, stopping and hooks, on a clock that tells the time we choose."""

from __future__ import annotations

import dataclasses
import gc
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.frameworks.protocols import Reading
from graphnet_datasets.timing.alone import measure_alone
from graphnet_datasets.timing.calls import ArmFailedError
from graphnet_datasets.timing.clocks import WallClock
from graphnet_datasets.timing.pairs import TimingSettings, break_even_calls, measure_pairs

QUICK = TimingSettings(warmup_s=0.0, min_warmup_calls=1, budget_s=10.0)


class FakeClock:
    """A clock that stands still but for the calls: each takes what it returns, in milliseconds."""

    name = "fake"

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def measure(self, call: Callable[[], Any]) -> Reading:
        elapsed_ms = call()
        self.elapsed_s += elapsed_ms / 1000
        return Reading(elapsed_ms, elapsed_ms, elapsed_ms + 0.5)

    def now_s(self) -> float:
        return self.elapsed_s


def noisy(mean_ms: float, spread: float, seed: int) -> Callable[[], float]:
    draws = random.Random(seed)  # noqa: S311 - reproducible noise
    return lambda: mean_ms * (1 + spread * draws.uniform(-1, 1))


def test_equal_times_stop_at_the_first_look() -> None:
    times = measure_pairs(lambda: 4.0, lambda: 2.0, settings=QUICK, clock=FakeClock())
    assert (times.speedup, times.speedup_low, times.speedup_high) == pytest.approx((2, 2, 2))
    assert len(times.baseline_ms) == len(times.candidate_ms) == 10
    assert times.candidate_wall_ms == (2.5,) * 10
    assert times.stopped_by == "precision"
    assert times.clock == "fake"
    assert times.first_call_s == 0.002


def test_it_stops_when_the_interval_is_narrow_enough() -> None:
    times = measure_pairs(noisy(3, 0.1, 1), noisy(2, 0.1, 2), settings=QUICK, clock=FakeClock())
    assert times.stopped_by == "precision"
    assert 10 < len(times.baseline_ms) < 2000
    assert times.speedup_low is not None
    assert times.speedup_high is not None
    assert times.speedup_high / times.speedup_low <= 1.01**2 + 1e-12
    assert times.speedup == pytest.approx(1.5, rel=0.03)


@pytest.mark.parametrize(
    ("changes", "stopped_by", "num_pairs"),
    [
        ({"max_pairs": 15, "precision": 1e-6}, "max_pairs", 15),
        ({"budget_s": 0.1, "precision": 1e-6}, "budget", 17),
        ({"budget_s": 0.001, "precision": 1e-6}, "budget", 10),
        ({"hard_budget_s": 0.02, "precision": 1e-6}, "hard_budget", 4),
        ({"hard_budget_s": 0.001, "precision": 1e-6}, "hard_budget", 3),
    ],
)
def test_the_stopping_reason_is_recorded(
    changes: dict[str, Any], stopped_by: str, num_pairs: int
) -> None:
    settings = TimingSettings(warmup_s=0, min_warmup_calls=1, **changes)
    # Six milliseconds a pair.
    arms = noisy(3, 1e-3, 1), noisy(3, 1e-3, 2)
    times = measure_pairs(*arms, settings=settings, clock=FakeClock())
    assert (times.stopped_by, len(times.baseline_ms)) == (stopped_by, num_pairs)


def test_settled_noise_ends_it_too() -> None:
    settings = TimingSettings(
        warmup_s=0,
        min_warmup_calls=1,
        budget_s=10,
        precision=1e-6,
        stable_pairs=100,
        stable_tolerance=0.2,
    )
    arms = noisy(3, 0.2, 1), noisy(2, 0.2, 2)
    times = measure_pairs(*arms, settings=settings, clock=FakeClock())
    assert times.stopped_by == "noise_stable"
    assert 100 <= len(times.baseline_ms) < 1000


def test_settled_noise_does_not_end_it_while_the_precision_is_within_reach() -> None:
    settings = TimingSettings(warmup_s=0, min_warmup_calls=1, budget_s=10, stable_tolerance=0.5)
    arms = noisy(3, 0.2, 1), noisy(2, 0.2, 2)
    times = measure_pairs(*arms, settings=settings, clock=FakeClock())
    assert times.stopped_by == "precision"
    assert len(times.baseline_ms) > 5 * settings.stable_pairs


def test_the_order_is_drawn_per_pair_and_reproducible() -> None:
    settings = TimingSettings(
        warmup_s=0, min_warmup_calls=1, budget_s=9, precision=1e-9, max_pairs=200, stable_pairs=201
    )
    arms = noisy(3, 0.2, 1), noisy(2, 0.2, 2)
    calls: list[str] = []
    times_of = ("baseline", "candidate")
    times = measure_pairs(
        *arms,
        settings=settings,
        clock=FakeClock(),
        before_each=lambda arm, pair: calls.append(arm) if pair >= 0 else None,
    )
    assert [first == "candidate" for first in calls[::2]] == list(times.is_candidate_first)
    fours = [times.is_candidate_first[i : i + 4] for i in range(0, 200, 4)]
    assert {sum(four) for four in fours} == {2}
    assert len(set(fours)) == 6, "every order of four pairs comes up"
    assert all({*pair} == {*times_of} for pair in zip(calls[::2], calls[1::2], strict=True))
    again = measure_pairs(*arms, settings=settings, clock=FakeClock())
    assert again.is_candidate_first == times.is_candidate_first


def test_hooks_surround_each_call_outside_the_clock() -> None:
    events: list[tuple[Any, ...]] = []
    clock = FakeClock()
    settings = TimingSettings(warmup_s=0, min_warmup_calls=1, min_pairs=3, max_pairs=3)
    measure_pairs(
        lambda: 1.0,
        lambda: 2.0,
        settings=settings,
        clock=clock,
        before_each=lambda arm, pair: events.append(("before", arm, pair)),
        after_each=lambda arm, pair, result: events.append(("after", arm, pair, result)),
    )
    for before, after in zip(events[::2], events[1::2], strict=True):
        _, arm, pair = before
        assert after == ("after", arm, pair, {"baseline": 1.0, "candidate": 2.0}[arm])
    assert [event[2] for event in events[::2] if event[2] >= 0] == [0, 0, 1, 1, 2, 2]
    assert events[0] == ("before", "candidate", -1)


def test_warm_up_goes_on_until_nothing_is_compiled_any_more() -> None:
    num_calls = 0

    def candidate() -> float:
        nonlocal num_calls
        num_calls += 1
        return 1.0

    settings = TimingSettings(warmup_s=0.0, min_warmup_calls=1, min_pairs=3, max_pairs=3)
    times = measure_pairs(
        lambda: 1.0,
        candidate,
        settings=settings,
        clock=FakeClock(),
        num_compilations=lambda: min(num_calls, 5),  # the first five calls compile
    )
    assert times.num_recompilations == 0
    assert times.num_warmup_calls >= 6
    assert times.warnings == ()


def test_warm_up_lasts_as_long_as_requested() -> None:
    settings = TimingSettings(warmup_s=0.05, min_warmup_calls=3, min_pairs=3, max_pairs=3)
    times = measure_pairs(lambda: 1.0, lambda: 1.0, settings=settings, clock=FakeClock())
    # Two calls until compilation has come to rest, then 100 ms in pairs of 2 ms.
    assert times.num_warmup_calls == 2 + 50


def test_a_compiler_that_never_comes_to_rest_is_recorded() -> None:
    num_calls = 0

    def candidate() -> float:
        nonlocal num_calls
        num_calls += 1
        return 1000.0

    settings = TimingSettings(max_warmup_s=5, min_warmup_calls=1, min_pairs=3, max_pairs=3)
    times = measure_pairs(
        lambda: 1.0,
        candidate,
        settings=settings,
        clock=FakeClock(),
        num_compilations=lambda: num_calls,
    )
    assert times.num_recompilations == 3
    assert times.warnings == (
        "still compiling when the warm-up ended",
        "recompiled 3 times while being timed",
    )


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
@pytest.mark.parametrize("num_good", [1, 8])
def test_an_arm_that_raises_is_named(arm: str, num_good: int) -> None:
    countdown: Iterator[float] = iter([1.0] * num_good)

    def failing() -> float:
        for value in countdown:
            return value
        raise ValueError("broken")

    arms: dict[str, Callable[[], float]] = {"baseline": lambda: 1.0, "candidate": lambda: 1.0}
    arms[arm] = failing
    with pytest.raises(ArmFailedError) as error:
        measure_pairs(**arms, settings=QUICK, clock=FakeClock())
    assert error.value.arm == arm
    assert isinstance(error.value.__cause__, ValueError)
    when = f"in pair {error.value.pair}" if error.value.pair >= 0 else "while warming up"
    assert str(error.value) == f"The {arm} raised ValueError {when}."


def test_the_collector_rests_and_is_woken_again() -> None:
    seen: list[bool] = []

    def arm() -> float:
        seen.append(gc.isenabled())
        return 1.0

    measure_pairs(arm, arm, settings=QUICK, clock=FakeClock())
    assert not any(seen)
    assert gc.isenabled()


def test_one_arm_alone() -> None:
    alone = measure_alone(lambda: 2.0, settings=QUICK, clock=FakeClock(), num_calls=4)
    assert alone.times_ms == (2.0,) * 4
    assert len(alone.preemptions) == 4


@pytest.mark.parametrize(("call_ms", "num_calls"), [(1.0, 50), (10.0, 20), (1000.0, 10)])
def test_an_arm_alone_is_called_as_often_as_its_budget_allows(
    call_ms: float, num_calls: int
) -> None:
    alone = measure_alone(lambda: call_ms, settings=QUICK, clock=FakeClock(), num_calls=50)
    assert len(alone.times_ms) == pytest.approx(num_calls, abs=1)


def test_break_even() -> None:
    assert break_even_calls(0.0105, [3.0, 3.0], [2.0, 2.0]) == 11
    assert break_even_calls(1.0, [2.0], [2.0]) is None


@pytest.mark.parametrize("changes", [{"min_pairs": 2}, {"max_pairs": 9}, {"precision": 0.0}])
def test_settings_that_give_no_interval_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(RunError, match="Timing needs `min_pairs` of at least 3"):
        TimingSettings(**changes)


def test_the_wall_clock_times_a_call_and_waits_for_the_device() -> None:
    order: list[str] = []

    def call() -> str:
        order.append("call")
        time.sleep(0.002)
        return "result"

    reading = WallClock(lambda: order.append("wait")).measure(call)
    assert (reading.result, order) == ("result", ["wait", "call", "wait"])
    assert reading.elapsed_ms == reading.wall_ms >= 2
    assert WallClock().measure(call).elapsed_ms >= 2


def test_a_candidate_that_replaces_the_timer_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = WallClock()
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 0)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert clock.measure(lambda: time.sleep(0.002)).elapsed_ms >= 2


@pytest.mark.gpu
def test_device_events_cover_work_on_other_streams() -> None:
    torch = pytest.importorskip("torch")
    from graphnet_datasets.frameworks.torch.device_clock import CudaEventClock

    matrix = torch.randn(4096, 4096, device="cuda")
    side = torch.cuda.Stream()

    def on_the_side() -> None:
        with torch.cuda.stream(side):
            for _ in range(20):
                matrix @ matrix

    def in_front() -> None:
        for _ in range(20):
            matrix @ matrix

    clock = CudaEventClock("cuda")
    for call in (on_the_side, in_front):
        clock.measure(call)
    front_ms = min(clock.measure(in_front).elapsed_ms for _ in range(5))
    side_ms = min(clock.measure(on_the_side).elapsed_ms for _ in range(5))
    assert side_ms > 0.8 * front_ms


@pytest.mark.parametrize("spike_share", [0.0, 0.02], ids=["normal", "heavy_tails"])
@pytest.mark.parametrize(
    ("spread", "first_is_slower"),
    [(0.012, 0.0), pytest.param(0.03, 0.0, marks=pytest.mark.slow), (0.01, 0.01)],
)
def test_the_stopping_rule_keeps_the_interval_honest(
    spread: float, first_is_slower: float, spike_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "collect", lambda: 0)  # a thousand of them take minutes
    draws = random.Random(0)  # noqa: S311 - reproducible noise

    def eager() -> float:
        spike = draws.expovariate(2) if draws.random() < spike_share else 0.0
        nonlocal is_first
        effect, is_first = first_is_slower * is_first, not is_first
        return 0.01 * math.exp(draws.gauss(0, spread) + spike + effect)

    is_first = True
    settings = TimingSettings(warmup_s=0, min_warmup_calls=1, budget_s=1e9, max_pairs=120)
    num_misses = 0
    for seed in range(1000):
        times = measure_pairs(
            eager, eager, settings=dataclasses.replace(settings, seed=seed), clock=FakeClock()
        )
        assert times.speedup_low is not None
        assert times.speedup_high is not None
        num_misses += not times.speedup_low <= 1 <= times.speedup_high
    assert 30 <= num_misses <= 80
