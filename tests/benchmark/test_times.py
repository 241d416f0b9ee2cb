"""Times of a record: what the kernel noted, and what becomes of whoever says otherwise."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from graphnet_datasets.benchmark.judging.stamps import TimesError
from graphnet_datasets.benchmark.judging.times import (
    take_alone,
    take_layouts,
    take_looks,
    take_noise,
    take_times,
)
from graphnet_datasets.isolation import Ending, Outcome, Stamp
from graphnet_datasets.schema import empty_run
from graphnet_datasets.timing.calls import ARMS
from tests.benchmark.stamped import stamps_of

ORDERS = [True, False] * 8
CALM = {"load": 0.5, "other_cpu_share": 0.01, "steal_share": 0.0}
BUSY = {"load": 9.0, "other_cpu_share": 0.6, "steal_share": 0.0}


def noisy(mean_ms: float, seed: int, count: int = 16, spread: float = 0.02) -> list[float]:
    draws = random.Random(seed)  # noqa: S311 - reproducible noise
    return [mean_ms * (1 + spread * draws.uniform(-1, 1)) for _ in range(count)]


def taken(
    baseline_ms: list[float],
    candidate_ms: list[float],
    change: Callable[[list[Stamp]], list[Stamp]] | None = None,
    *,
    is_kernel_time: bool = True,
    **report: Any,
) -> dict[str, Any]:
    """Return the record of calls of these times; `report` replaces messages of the worker."""
    return taken_with_suspicions(baseline_ms, candidate_ms, change, is_kernel_time, report)[0]


def taken_with_suspicions(
    baseline_ms: list[float],
    candidate_ms: list[float],
    change: Callable[[list[Stamp]], list[Stamp]] | None,
    is_kernel_time: bool,
    report: dict[str, Any],
) -> tuple[dict[str, Any], list[str]]:
    orders = [bool(place % 2) for place in range(len(baseline_ms))]
    stamps = stamps_of(baseline_ms, candidate_ms, orders)
    messages = {
        "baseline_latency_ms": baseline_ms,
        "candidate_latency_ms": candidate_ms,
        "is_candidate_first": orders,
        "baseline_first_ms": [2.0, 2.0],
        "clock": "perf_counter",
        "stopped_by": "precision",
        "machine": CALM,
        **report,
    }
    ended = Outcome(Ending.FINISHED, "run", [], None, 0, "", 0, 1.0, {}, 0, 0)
    ended.stamps = stamps if change is None else change(stamps)
    ended.is_kernel_time = is_kernel_time
    record = {**empty_run(), "warnings": []}
    return record, take_times(record, messages, ended)


def test_the_times_of_a_record_are_those_of_the_kernel_without_its_stamps() -> None:
    record = taken([2.0, 2.2, 2.1], [1.0, 1.1, 1.0])
    assert record["baseline_latency_ms"] == pytest.approx([2.0, 2.2, 2.1], rel=1e-4)
    assert record["candidate_latency_ms"] == pytest.approx([1.0, 1.1, 1.0], rel=1e-4)
    assert (record["clock"], record["timed_in"]) == ("kernel", "pairs")


def test_calls_are_not_too_short_where_the_machine_was_busy_before_them_only() -> None:
    """Being interrupted between a clock and its stamp made the first calls look like stamping."""
    record = taken([0.3] * 4, [0.3] * 4, baseline_first_ms=[1.7, 1.7])
    assert record["baseline_latency_ms"] == pytest.approx([0.3] * 4, rel=1e-2)


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_small_lies_change_nothing(share: float) -> None:
    """The documented limit: below a twentieth a lie is not found out, and is not recorded."""
    honest = taken([20.0] * 4, [10.0] * 4)
    said = taken([20.0] * 4, [10.0] * 4, candidate_latency_ms=[10.0 * share] * 4)
    assert said["speedup"] == pytest.approx(honest["speedup"], rel=1e-3)  # what stamps take


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
@pytest.mark.parametrize("share", [1e-6, 0.5, 0.93, 1.07, 5.0])
def test_larger_lies_are_found_out(arm: str, share: float) -> None:
    report = {f"{arm}_latency_ms": [10.0 * share] * 4}
    record, (suspicion,) = taken_with_suspicions([10.0] * 4, [10.0] * 4, None, True, report)
    assert suspicion.startswith(f"A call of the {arm} took 10 ms by the clock of the kernel")
    assert record[f"{arm}_latency_ms"] == pytest.approx([10.0] * 4, rel=1e-3)


def without(label: str) -> Callable[[list[Stamp]], list[Stamp]]:
    return lambda stamps: [stamp for stamp in stamps if stamp.label != label]


def doubled(label: str) -> Callable[[list[Stamp]], list[Stamp]]:
    return lambda stamps: [each for stamp in stamps for each in [stamp] * (1 + (stamp[0] == label))]


def early(label: str, other: str) -> Callable[[list[Stamp]], list[Stamp]]:
    """Return a change that sends `label` directly before `other` besides."""
    return lambda stamps: [
        each
        for stamp in stamps
        for each in ([Stamp(label, stamp.at_ns)] if stamp.label == other else []) + [stamp]
    ]


@pytest.mark.parametrize(
    "change",
    [
        without("-candidate 1"),
        without("+candidate 1"),
        without("+baseline 0"),
        without("-first 0"),
        without("phase run"),
        doubled("-candidate 1"),
        doubled("+candidate 1"),
        early("-candidate 1", "-candidate 1"),
        early("-candidate 2", "-candidate 1"),
        early("phase run", "+first 0"),
        early("phase profile", "-candidate 1"),
        early("anything", "+candidate 1"),
        lambda stamps: stamps[:-4],
        lambda _: [],
    ],
)
def test_stamps_that_are_not_those_of_the_calls_are_found_out(
    change: Callable[[list[Stamp]], list[Stamp]],
) -> None:
    with pytest.raises(TimesError) as error:
        taken([2.0] * 4, [1.0] * 4, change)
    assert error.value.is_forged


def test_a_kernel_that_notes_nothing_leaves_the_clock_of_the_worker() -> None:
    record = taken([2.0, 2.2, 2.1], [1.0, 1.1, 1.0], is_kernel_time=False)
    assert record["clock"] == "perf_counter"


def test_pairs_with_a_preempted_call_do_not_count_where_there_are_others() -> None:
    slow = [1.0] * 12 + [9.0] * 4
    record = taken([2.0] * 16, slow, candidate_preemptions=[0] * 12 + [2] * 4)
    assert (record["num_calm_pairs"], record["speedup"]) == (12, pytest.approx(2))
    assert record["candidate_latency_ms"][-1] == pytest.approx(9), "nothing is removed"
    slow = [1.0] * 9 + [9.0] * 7
    few = taken([2.0] * 16, slow, candidate_preemptions=[0] * 9 + [2] * 7)
    assert few["num_calm_pairs"] == 9
    assert few["speedup"] < 2


def test_an_arm_that_is_preempted_more_often_widens_the_interval() -> None:
    """As a candidate would have it that says so of its slow calls."""
    times = noisy(1, 1, 30)[:18] + noisy(4, 2, 12)
    record = taken(noisy(2, 3, 30), times, candidate_preemptions=[0] * 18 + [1] * 12)
    assert record["speedup"] == pytest.approx(2, rel=0.05)
    assert record["speedup_low"] < 1.3
    assert [warning.partition(":")[0] for warning in record["warnings"]] == ["unevenly_preempted"]


@pytest.mark.parametrize(
    ("machine", "preemptions", "is_noisy"),
    [
        (CALM, [0] * 16, False),
        (BUSY, [0] * 16, True),
        ({**CALM, "steal_share": 0.05}, [0] * 16, True),
        (CALM, [1] * 16, False),  # their interval is narrow
        ({"load": "high"}, [0] * 16, False),
    ],
)
def test_a_busy_machine_is_noisy_whatever_the_interval(
    machine: dict[str, Any], preemptions: list[int], is_noisy: bool
) -> None:
    record = taken([2.0] * 16, [1.0] * 16, machine=machine, baseline_preemptions=preemptions)
    assert record["is_noisy"] is is_noisy


@pytest.mark.parametrize(
    ("spread", "precision", "is_noisy"), [(0.01, 0.01, False), (0.6, 0.01, True), (0.6, 1.0, False)]
)
def test_a_speedup_is_noisy_where_its_interval_is_wider_than_the_stated_precision(
    spread: float, precision: float, is_noisy: bool
) -> None:
    record = taken(noisy(2, 1, 30, spread), noisy(1, 2, 30, spread), machine=CALM)
    record["settings"] = json.dumps({"timing": {"precision": precision}})
    take_noise(record)
    assert record["is_noisy"] is is_noisy
    record |= {"speedup_low": None}
    take_noise(record)
    assert record["is_noisy"] is True, "the precision is not known"


def looked(delays_ms: dict[str, float]) -> Callable[[list[Stamp]], list[Stamp]]:
    """Return a change that has the outputs of each call looked at so long after it."""
    return looked_each({arm: [delay] * 12 for arm, delay in delays_ms.items()})


def looked_each(delays_ms: dict[str, list[float]]) -> Callable[[list[Stamp]], list[Stamp]]:
    """Return a change that has the outputs of each call looked at after a time of its own."""

    def change(stamps: list[Stamp]) -> list[Stamp]:
        changed = []
        for stamp in stamps:
            changed.append(stamp)
            arm, _, pair = stamp.label[1:].partition(" ")
            if stamp.label.startswith("-") and arm in delays_ms and int(pair) >= 0:
                at_ns = stamp.at_ns + round(delays_ms[arm][int(pair)] * 1e6)
                changed.append(Stamp(f"={stamp.label[1:]} {arm[0]}0", at_ns))
        return changed

    return change


def with_looks(change: Callable[[list[Stamp]], list[Stamp]]) -> tuple[dict[str, Any], set[str]]:
    record = taken([20.0] * 12, [1.0] * 12)
    ended = Outcome(Ending.FINISHED, "run", [], None, 0, "", 0, 1.0, {}, 0, 0)
    ended.stamps = change(stamps_of([20.0] * 12, [1.0] * 12, [True, False] * 6))
    return record, take_looks(record, ended)


def test_outputs_that_are_there_when_the_call_ends_are_not_doubted() -> None:
    record, seen = with_looks(looked({"baseline": 0.2, "candidate": 0.22}))
    assert (record["warnings"], seen) == ([], {"c0"})
    assert record["speedup_low"] == pytest.approx(20)


def test_late_outputs_widen_the_interval() -> None:
    record, _ = with_looks(looked({"baseline": 0.2, "candidate": 19.2}))
    assert record["speedup"] == pytest.approx(20)
    assert record["speedup_low"] == pytest.approx(1, rel=0.01)
    assert [warning.partition(":")[0] for warning in record["warnings"]] == ["late_outputs"]


def test_outputs_of_an_honest_call_are_not_late_on_a_busy_machine() -> None:
    """Looks of either arm are interrupted, some for 10 ms: five of twelve of the candidate's."""
    draw = random.Random(3)  # noqa: S311 - no secret
    warned = 0
    for _ in range(200):
        busy = {arm: [0.2 + 10 * (draw.random() < 0.4) for _ in range(12)] for arm in ARMS}
        record, _ = with_looks(looked_each(busy))
        warned += bool(record["warnings"])
    assert warned <= 4


@pytest.mark.parametrize(
    ("label", "before"),
    [
        ("=candidate 1 ab", "+candidate 1"),
        ("=candidate 2 ab", "+candidate 1"),
        ("=stranger 0 ab", "phase run"),
    ],
)
def test_a_look_that_does_not_follow_its_call_is_found_out(label: str, before: str) -> None:
    with pytest.raises(TimesError):
        with_looks(early(label, before))


def with_layouts(
    took_ms: dict[str, float], first_ms: float = 3.0, busy_ms: Callable[[], float] = lambda: 0.0
) -> tuple[dict[str, Any], str | None]:
    """Return record and suspicion of calls whose inputs took so long to be laid out, by arm."""
    record = taken([20.0] * 12, [10.0] * 12)
    stamps = []
    for stamp in stamps_of([20.0] * 12, [10.0] * 12, [True, False] * 6, [20.0, 20.0]):
        if stamp.label.startswith("+"):
            arm = stamp.label[1:].partition(" ")[0]
            before_ms = took_ms.get(arm, first_ms) + busy_ms()
            stamps.append(Stamp(f"<{stamp.label[1:]}", stamp.at_ns - round(before_ms * 1e6)))
        stamps.append(stamp)
    ended = Outcome(Ending.FINISHED, "run", [], None, 0, "", 0, 1.0, {}, 0, 0)
    ended.stamps = stamps
    return record, take_layouts(record, ended)


@pytest.mark.parametrize("first_ms", [3.0, 2.5, 5.0])
def test_inputs_that_take_both_arms_as_long_are_not_doubted(first_ms: float) -> None:
    record, suspicion = with_layouts({"baseline": 3.0, "candidate": 3.1}, first_ms)
    assert (record["warnings"], record["speedup_low"]) == ([], pytest.approx(2))
    assert suspicion is None


@pytest.mark.parametrize("eager_ms", [3.0, 8.0])
def test_work_ahead_of_the_clock_widens_the_interval(eager_ms: float) -> None:
    """Even where the candidate lets eager's inputs take as long."""
    record, suspicion = with_layouts({"baseline": eager_ms, "candidate": 8.0})
    assert suspicion is None
    assert record["speedup"] == pytest.approx(2)
    assert 1.3 < record["speedup_low"] < 1.45
    assert [warning.partition(":")[0] for warning in record["warnings"]] == ["early_work"]


@pytest.mark.parametrize("eager_ms", [3.0, 43.0])
def test_more_work_ahead_of_the_clock_than_behind_it_is_refused(eager_ms: float) -> None:
    _, suspicion = with_layouts({"baseline": eager_ms, "candidate": 43.0})
    assert suspicion is not None
    assert "works before the clock is started" in suspicion


def test_inputs_of_an_honest_call_are_not_early_on_a_busy_machine() -> None:
    draw = random.Random(5)  # noqa: S311 - no secret
    warned = sum(
        bool(
            with_layouts(
                {"baseline": 3.0, "candidate": 3.0}, 3.0, lambda: 20 * (draw.random() < 0.3)
            )[0]["warnings"]
        )
        for _ in range(200)
    )
    assert warned <= 4


def test_interruptions_of_many_layouts_are_no_suspicion() -> None:
    """The first calls came before the machine was busy, and a call is shorter than a layout."""
    draw = random.Random(7)  # noqa: S311 - no secret
    layouts = {"baseline": 3.0, "candidate": 3.0}
    suspicions = []
    for _ in range(200):
        busy_ms = iter([0.0, 0.0, *(20.0 * (draw.random() < 0.5) for _ in range(24))])
        suspicions.append(with_layouts(layouts, 3.0, lambda busy_ms=busy_ms: next(busy_ms))[1])
    assert sum(suspicion is not None for suspicion in suspicions) <= 8


def test_a_call_that_does_not_follow_its_inputs_is_found_out() -> None:
    record = taken([2.0] * 4, [1.0] * 4)
    ended = Outcome(Ending.FINISHED, "run", [], None, 0, "", 0, 1.0, {}, 0, 0)
    stamps = stamps_of([2.0] * 4, [1.0] * 4, [False] * 4)
    ended.stamps = [Stamp("<candidate 1", stamps[0].at_ns), *stamps]
    with pytest.raises(TimesError, match="another call followed"):
        take_layouts(record, ended)


def weighed(
    baseline_ms: list[float],
    alone_ms: list[float],
    machine: Any = CALM,
    alone: Any = CALM,
    first_ms: list[float] | None = None,
) -> dict[str, Any]:
    record = taken(baseline_ms, noisy(1.0, 9, len(baseline_ms)), machine=machine)
    take_alone(record, alone_ms, [0] * len(alone_ms), alone, first_ms)
    return record


def test_a_baseline_that_is_the_same_alone_is_not_doubted() -> None:
    record = weighed(noisy(2, 1), noisy(2.05, 2, 30))
    assert record["is_baseline_disturbed"] is False
    assert record["warnings"] == []
    assert record["speedup_high"] < 2.1


@pytest.mark.parametrize("ratio", [0.6, 1.4])
def test_a_baseline_that_was_so_before_the_candidate_has_drifted(ratio: float) -> None:
    record = weighed(noisy(2, 1), noisy(2 / ratio, 2, 60), first_ms=noisy(2.05, 3, 9))
    assert record["is_baseline_disturbed"] is False
    assert [warning.partition(":")[0] for warning in record["warnings"]] == ["drifted"]
    assert record["speedup_low"] > 1.9
    assert record["speedup_high"] < 2.1


@pytest.mark.parametrize("first", [1.4, 2.9])
def test_first_calls_that_are_others_too_explain_no_doubt(first: float) -> None:
    record = weighed(noisy(2, 1), noisy(1.4, 2, 60), first_ms=noisy(first, 3, 9))
    assert record["is_baseline_disturbed"] is True


def hooked(share: float, count: int, seed: int) -> list[float]:
    """Return times of which a share is twenty milliseconds longer, as a hook makes them."""
    draws = random.Random(seed)  # noqa: S311 - reproducible
    slow = [place < share * count for place in range(count)]
    draws.shuffle(slow)
    return [each + 20 * is_slow for each, is_slow in zip(noisy(2, seed, count), slow, strict=True)]


@pytest.mark.parametrize("share", [0.4, 0.5, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_hook_on_some_of_the_calls_is_a_disturbance(share: float, seed: int) -> None:
    """Some calls are as quick as ever: one clean call disarms nothing, nor do the first calls."""
    record = weighed(hooked(share, 100, seed), noisy(2, seed, 60), first_ms=noisy(2, seed, 9))
    assert record["is_baseline_disturbed"] is True
    assert record["speedup_low"] <= 2.1 < record["speedup_high"]


def test_a_baseline_that_is_faster_beside_the_candidate_is_doubted_too() -> None:
    record = weighed(noisy(1, 1), noisy(3, 2, 30))
    assert record["is_baseline_disturbed"] is True
    assert record["speedup"] == pytest.approx(1, rel=0.05)
    assert record["speedup_low"] < 1 < 2.9 < record["speedup_high"]


@pytest.mark.parametrize(("machine", "alone"), [(BUSY, CALM), (CALM, BUSY), (BUSY, BUSY)])
def test_on_a_busy_machine_a_difference_widens_the_interval_and_is_no_disturbance(
    machine: Any, alone: Any
) -> None:
    """Medians of 213 against 328 were once recorded as 0.032 [0.005, 0.204]."""
    paired = noisy(2.13, 1, spread=0.3)
    record = weighed(paired, noisy(3.1, 2, 30, spread=0.3), machine, alone)
    assert record["is_baseline_disturbed"] is False
    assert record["speedup"] == pytest.approx(2.13, rel=0.15)
    assert record["speedup_low"] < 2.2
    assert record["speedup_high"] > 2.9
    assert [warning.partition(":")[0] for warning in record["warnings"]] == ["noisy"]


def test_differences_beyond_noise_are_disturbances_on_a_busy_machine() -> None:
    assert weighed(noisy(60, 1), noisy(2, 2, 30), BUSY)["is_baseline_disturbed"] is True


def test_few_calls_alone_prove_nothing() -> None:
    assert weighed(noisy(3, 1, 4), [2.0])["is_baseline_disturbed"] is False


def test_honest_runs_are_rarely_doubted() -> None:
    doubted = [
        weighed(noisy(2, 2 * seed, 40, 0.3), noisy(2, 2 * seed + 1, 40, 0.3)) for seed in range(200)
    ]
    assert sum(record["is_baseline_disturbed"] for record in doubted) <= 4
