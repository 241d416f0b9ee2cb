"""What no program can be faster than, and runs that were."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from graphnet_datasets.benchmark.judging.floors import is_worth_a_floor, least_bytes, take_floor
from graphnet_datasets.benchmark.judging.roofline import PeakRates
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import empty_run
from graphnet_datasets.scores import speedup_score
from tests.benchmark.samples import LINEAR, make_sample

PEAKS = PeakRates(
    *("cpu", "", 1, {"float32": 1e9, "bfloat16": 4e9}, 1e9),
    cache_bytes=10**6,
    load=0.1,
    other_cpu_share=0.0,
    steal_share=0.0,
)
ROW = {"flops": 40_000_000, "dtype": "float32"}  # 40 ms in float32, 10 ms in bfloat16


def floored(candidate_ms: float, baseline_ms: float = 80.0, **columns: Any) -> dict[str, Any]:
    record = empty_run() | {
        "cache_mode": "warm",
        "warnings": [],
        "candidate_latency_ms": [candidate_ms] * 3,
        "baseline_latency_ms": [baseline_ms] * 3,
    }
    num_bytes = columns.pop("num_bytes", 0)
    measure = columns.pop("measure", lambda: PEAKS)
    record |= columns
    take_floor(record, ROW, num_bytes, PEAKS, measure)
    return record


def test_the_floor_is_that_of_the_samples_dtype() -> None:
    record = empty_run() | {"cache_mode": "warm", "warnings": []}
    record |= {"candidate_latency_ms": [50.0], "baseline_latency_ms": [80.0]}
    take_floor(record, ROW, 0, PEAKS, lambda: None)
    assert record["floor_ms"] == 40.0
    assert record["warnings"] == []


@pytest.mark.parametrize(("latency_ms", "is_flagged"), [(2.4, True), (2.6, False)])
def test_a_quarter_of_the_fastest_rates_time_is_impossible(
    latency_ms: float, is_flagged: bool
) -> None:
    warnings = floored(latency_ms)["warnings"]
    assert warnings == (
        [
            "impossibly_fast: the candidate took 2.4 ms for work that takes at least 10 ms at the "
            "peak rates of `cpu`."
        ]
        if is_flagged
        else []
    )


FASTER = dataclasses.replace(PEAKS, flops_per_s={"float32": 17e9, "bfloat16": 17e9})
BUSY = dataclasses.replace(PEAKS, load=9.0, other_cpu_share=0.8)


@pytest.mark.parametrize(
    ("measured", "kind"),
    [(PEAKS, "impossibly_fast"), (BUSY, "faster_than_peak"), (None, "faster_than_peak")],
)
def test_only_a_quiet_machine_calls_a_speedup_impossible(
    measured: PeakRates | None, kind: str
) -> None:
    (warning,) = floored(2.0, measure=lambda: measured)["warnings"]
    assert warning.startswith(f"{kind}: the candidate took 2 ms for work that takes at least 10 ms")
    run = {"sample_id": "a", "status": "ok", "speedup": 40.0, "min_t": -9.0, "warnings": [warning]}
    counted = speedup_score([run, {**run, "sample_id": "b", "warnings": []}]).num_samples
    assert counted == 1 + (kind == "faster_than_peak")


def test_a_stale_peak_is_raised_before_it_condemns() -> None:
    """The same machine had 12 and 203 GFLOP/s."""
    for measured in (FASTER, dataclasses.replace(FASTER, load=9.0, other_cpu_share=0.8)):
        record = floored(2.0, measure=lambda measured=measured: measured)
        assert record["warnings"] == []
        assert record["floor_ms"] == pytest.approx(40e6 / 17e9 * 1000)


def test_eager_alone_raises_a_peak_and_a_candidate_does_not() -> None:
    record = empty_run() | {"cache_mode": "warm", "warnings": []}
    record |= {"candidate_latency_ms": [0.1], "baseline_latency_ms": [80.0]}
    peaks = take_floor(record, ROW, 0, PEAKS, lambda: None)
    assert peaks == PEAKS
    peaks = take_floor(record | {"baseline_alone_ms": [4.0]}, ROW, 0, PEAKS, lambda: None)
    assert peaks.flops_per_s == {"float32": pytest.approx(10e9), "bfloat16": 4e9}


def test_where_eager_is_as_fast_the_floor_is_wrong() -> None:
    assert floored(0.1, baseline_ms=5.0)["warnings"] == []


def test_warm_caches_may_hold_a_part_of_the_bytes() -> None:
    columns = {"num_bytes": 12_000_000, "cache_mode": "cold"}
    assert len(floored(2.9, **columns)["warnings"]) == 1
    assert floored(2.9, **{**columns, "cache_mode": "warm"})["warnings"] == []


def test_inputs_and_outputs_have_to_be_moved() -> None:
    assert least_bytes(LINEAR, 4 * 8 * 4) == 4 * (4 * 16 + 8 * 16 + 4 * 8)


def test_partly_read_and_unread_inputs_do_not_count() -> None:
    inputs = (
        Input("input", Value("float32", (1000, 16))),
        Input("parameter", Value("float32", (8, 16))),
    )
    sample = make_sample(
        "partial",
        Op("operator.getitem", (Ref(0), 3)),
        inputs=inputs,
    )
    assert least_bytes(sample, 64) == 64


def test_little_work_has_no_floor() -> None:
    assert not is_worth_a_floor(None, 1000)
    assert is_worth_a_floor(None, 2**30)
    assert is_worth_a_floor(10**9, 0)
