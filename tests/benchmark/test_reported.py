"""What follows from the times of a run, and what a worker cannot make us believe."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphnet_datasets.benchmark.judging.reported import read_device_state, take_figures
from graphnet_datasets.schema import empty_run


def record_of(events_ms: float, wall_ms: float, kernel_ms: float | None) -> dict[str, Any]:
    record = empty_run() | {"warnings": [], "compile_time_s": 1.0}
    record |= {"baseline_latency_ms": [5.0], "baseline_wall_ms": 5.1, "baseline_kernel_ms": 4.9}
    record |= {
        "candidate_latency_ms": [events_ms],
        "candidate_wall_ms": wall_ms,
        "candidate_kernel_ms": kernel_ms,
    }
    take_figures(record, {"launch_mode": "stream"})
    return record


def test_compiling_pays_after_as_many_calls_as_save_its_time() -> None:
    assert record_of(3.0, 3.0, 3.0)["break_even_calls"] == 500
    assert record_of(6.0, 6.0, 6.0)["break_even_calls"] is None


def test_a_gpu_that_is_idle_most_of_the_time_is_bound_by_launches() -> None:
    record = record_of(3.0, 3.1, 1.0)
    assert record["is_candidate_launch_bound"] is True
    assert record["is_baseline_launch_bound"] is False
    assert record["warnings"] == []
    assert record_of(3.0, 3.1, None)["is_candidate_launch_bound"] is None


@pytest.mark.parametrize(
    ("events_ms", "wall_ms", "kernel_ms", "said"),
    [
        (1.0, 3.0, 0.9, "events 1 ms, wall 3 ms, kernels 0.9 ms"),
        (1.0, 1.1, 4.0, "events 1 ms, wall 1.1 ms, kernels 4 ms"),
    ],
)
def test_clocks_that_disagree_are_flagged(
    events_ms: float, wall_ms: float, kernel_ms: float, said: str
) -> None:
    (warning,) = record_of(events_ms, wall_ms, kernel_ms)["warnings"]
    assert warning == f"clocks_disagree on the candidate: {said}"


def test_throttling_is_flagged() -> None:
    record = empty_run() | {"warnings": []}
    state = {"throttle_reasons": ["hw_thermal_slowdown"], "sm_clock_mhz": 900}
    take_figures(record, {"device_before": None, "device_after": state})
    assert record["device_before"] is None
    assert record["device_after"]["sm_clock_mhz"] == 900
    assert record["warnings"] == ["throttled after the timed calls: hw_thermal_slowdown"]


@pytest.mark.parametrize("state", ["hot", 3, None, ["x"]])
def test_an_invalid_state_is_ignored(state: Any) -> None:
    assert read_device_state(state) is None


def test_a_state_with_nonsense_in_it_has_nothing_there() -> None:
    state = read_device_state({"sm_clock_mhz": "fast", "power_w": math.nan, "throttle_reasons": 4})
    assert state is not None
    assert set(state.values()) == {None}
