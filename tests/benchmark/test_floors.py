"""What no program can be faster than, and runs that were."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.benchmark.judging.floors import is_worth_a_floor, least_bytes, take_floor
from graphnet_datasets.benchmark.judging.roofline import PeakRates
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import empty_run
from tests.benchmark.samples import LINEAR, make_sample

PEAKS = PeakRates("cpu", "", 1, {"float32": 1e9, "bfloat16": 4e9}, 1e9, cache_bytes=10**6)
ROW = {"flops": 40_000_000, "dtype": "float32"}  # 40 ms in float32, 10 ms in bfloat16


def floored(candidate_ms: float, baseline_ms: float = 80.0, **columns: Any) -> dict[str, Any]:
    record = empty_run() | {
        "cache_mode": "warm",
        "warnings": [],
        "candidate_latency_ms": [candidate_ms] * 3,
        "baseline_latency_ms": [baseline_ms] * 3,
    }
    num_bytes = columns.pop("num_bytes", 0)
    take_floor(record | columns, ROW, num_bytes, PEAKS)
    return record


def test_the_floor_is_that_of_the_samples_dtype() -> None:
    record = empty_run() | {"cache_mode": "warm", "warnings": []}
    record |= {"candidate_latency_ms": [50.0], "baseline_latency_ms": [80.0]}
    take_floor(record, ROW, 0, PEAKS)
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


def test_where_eager_is_as_fast_the_floor_is_wrong() -> None:
    assert floored(0.1, baseline_ms=5.0)["warnings"] == []


def test_warm_caches_may_hold_a_part_of_the_bytes() -> None:
    columns = {"num_bytes": 12_000_000, "cache_mode": "cold"}
    assert len(floored(2.9, **columns)["warnings"]) == 1
    assert floored(2.9, **{**columns, "cache_mode": "warm"})["warnings"] == []


def test_inputs_and_outputs_have_to_be_moved() -> None:
    assert least_bytes(LINEAR, 4 * 8 * 4) == 4 * (4 * 16 + 8 * 16 + 4 * 8)


def test_what_is_read_in_part_or_not_at_all_bounds_nothing() -> None:
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
