"""Times of turns by the kernel, and what they say of a doubt."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.benchmark.judging.stamps import TimesError
from graphnet_datasets.benchmark.judging.turn_times import take_doubt, take_turn_times
from graphnet_datasets.isolation import Ending, Outcome, Stamp
from graphnet_datasets.schema import empty_run


def ended(arm: str, times_ms: list[float], **said: Any) -> Outcome:
    """Return the end of a process in which the kernel saw these calls."""
    stamps, now = [Stamp("phase baseline", 0)], 10**9
    calls = [("first 0", 2.0), *((f"{arm} {place}", each) for place, each in enumerate(times_ms))]
    for place, (name, elapsed_ms) in enumerate(calls):
        if place == 1:
            stamps.append(Stamp("phase run", now))
        stamps += [Stamp(f"+{name}", now), Stamp(f"-{name}", now + round(elapsed_ms * 1e6))]
        now += 10**9
    messages = {
        "baseline_first_ms": [2.0],
        f"{arm}_turns_ms": times_ms,
        f"{arm}_turn_lengths": [2] * (len(times_ms) // 2),
        "clock": "perf_counter",
        **said,
    }
    return Outcome(Ending.FINISHED, "run", [messages], None, 0, "", 0, 1.0, {}, 0, 0, stamps=stamps)


def taken(
    candidate_ms: list[float],
    baseline_ms: list[float],
    of_eager: dict[str, Any] | None = None,
    **said: Any,
) -> dict[str, Any]:
    outcome = ended("candidate", candidate_ms, **said)
    record = {**empty_run(), "warnings": []}
    eager = ended("baseline", baseline_ms, **(of_eager or {}))
    take_turn_times(record, outcome.merged(), outcome, eager)
    return record


def test_other_times_than_the_kernel_s_are_a_suspicion() -> None:
    outcome = ended("candidate", [1.0, 1.2] * 5, candidate_turns_ms=[0.1, 0.12] * 5)
    eager = ended("baseline", [2.0, 2.4] * 5)
    record = {**empty_run(), "warnings": []}
    (suspicion,) = take_turn_times(record, outcome.merged(), outcome, eager)
    assert suspicion.startswith("A call of the candidate took 1.1 ms by the clock of the kernel")
    assert record["candidate_latency_ms"] == pytest.approx([1.1] * 5)


def test_a_block_is_the_median_of_its_calls() -> None:
    record = taken([1.0, 1.2] * 5, [2.0, 2.4] * 5)
    assert record["candidate_latency_ms"] == pytest.approx([1.1] * 5)
    assert record["baseline_latency_ms"] == pytest.approx([2.2] * 5)
    assert (record["timed_in"], record["clock"]) == ("turns", "kernel")
    assert record["speedup"] == pytest.approx(2)


@pytest.mark.parametrize(
    "lie",
    [
        {"candidate_turns_ms": [1.0, 1.2] * 4, "candidate_turn_lengths": [2] * 4},
        {"candidate_turn_lengths": [10]},
        {"candidate_turn_lengths": [0, 2, 2, 2, 2, 2]},
        {"candidate_turn_lengths": [3] * 5},
        {"candidate_turn_lengths": "2"},
        {"candidate_turns_ms": None},
        {"baseline_first_ms": [2.0, 2.0]},
    ],
)
def test_turns_that_the_kernel_did_not_see_are_refused(lie: dict[str, Any]) -> None:
    with pytest.raises(TimesError):
        taken([1.0, 1.2] * 5, [2.0, 2.4] * 5, **lie)


def test_no_more_is_taken_off_for_stamps_than_they_took_in_the_turns() -> None:
    # Both processes were slow to stamp before, while the other one was loaded.
    busy_before = {"baseline_first_ms": [1.8]}
    of_eager = {**busy_before, "baseline_turns_ms": [1.9, 2.3] * 5}
    said = {**busy_before, "candidate_turns_ms": [0.9, 1.1] * 5}
    record = taken([1.0, 1.2] * 5, [2.0, 2.4] * 5, of_eager, **said)
    assert record["candidate_latency_ms"] == pytest.approx([1.0] * 5)
    assert record["baseline_latency_ms"] == pytest.approx([2.1] * 5)


def doubted(speedup: float) -> dict[str, Any]:
    return {
        **empty_run(),
        "speedup": speedup,
        "is_baseline_disturbed": True,
        "baseline_alone_ms": [1.0],
        "speedup_low": 1.0,
        "speedup_high": 30.0,
        "warnings": ["baseline_disturbed: eager beside the candidate takes 2 of its time alone"],
    }


def test_turns_that_deny_the_pairs_are_the_record() -> None:
    record, before = taken([1.0, 1.2] * 5, [2.0, 2.4] * 5), doubted(30.0)
    assert take_doubt(record, before, (2.0, 2.1))
    assert (record["is_baseline_disturbed"], record["paired_speedup"]) == (True, 30.0)
    assert record["warnings"][-1].startswith("baseline_disturbed: in two processes that take turns")


def test_turns_that_confirm_the_pairs_leave_them() -> None:
    record, before = taken([1.0, 1.2] * 5, [2.0, 2.4] * 5), doubted(2.05)
    assert not take_doubt(record, before, (2.0, 2.1))
    assert before["is_baseline_disturbed"] is False
    (warning,) = before["warnings"]
    assert warning.startswith("baseline_doubted: the pairs stand; eager alone took another time")
    assert before["speedup_low"] <= 2.0 < 2.1 <= before["speedup_high"] < 2.2
