"""`costs`: median latencies of samples as columns."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.errors import SchemaError
from graphnet_datasets.scores import costs


def run(
    sample_id: str, compiler: str, speedup: float | None, device: str = "cpu", **columns: Any
) -> dict[str, Any]:
    row = {
        "sample_id": sample_id, "compiler": compiler, "device": device, "num_threads": 2,
        "status": "ok", "speedup": speedup, "min_t": -9.0,
        "baseline_latency_ms": [4.0, 5.0, 60.0], "candidate_latency_ms": [5.0 / (speedup or 1)],
        "baseline_peak_memory_bytes": 100, "compile_time_s": 7.0,
    }  # fmt: skip
    return row | columns


RUNS = [
    run("a", "inductor", 2.0),
    run("a", "inductor", 4.0, baseline_latency_ms=[9.0], baseline_peak_memory_bytes=300),
    run("a", "inductor", 10.0, device="cuda", baseline_latency_ms=[0.5]),
    run("a", "torchscript", None, status="run_failed", baseline_latency_ms=None),
    run("b", "eager", 1.0),
]


def test_each_sample_and_device_has_a_row_with_medians() -> None:
    table = costs(RUNS)
    assert table.column_names == [
        "sample_id", "device", "num_threads", "eager_ms", "eager_memory_bytes",
        "inductor_ms", "inductor_speedup", "inductor_compile_s",
        "torchscript_ms", "torchscript_speedup", "torchscript_compile_s",
    ]  # fmt: skip
    rows = table.to_pylist()
    assert [(row["sample_id"], row["device"]) for row in rows] == [
        ("a", "cpu"),
        ("a", "cuda"),
        ("b", "cpu"),
    ]
    assert [row["eager_ms"] for row in rows] == [7.0, 0.5, 5.0]
    assert [row["inductor_speedup"] for row in rows] == [3.0, 10.0, None]
    assert [row["inductor_ms"] for row in rows] == [(2.5 + 1.25) / 2, 0.5, None]
    assert [row["eager_memory_bytes"] for row in rows] == [300, 100, 100]
    assert table["torchscript_ms"].null_count == 3


def test_the_table_has_the_sizes_of_given_samples_in_their_order() -> None:
    samples = [{"id": "c", "flops": 5}, {"id": "a", "flops": 7, "num_params": 1}]
    rows = costs(RUNS, samples).to_pylist()
    assert [(row["sample_id"], row["device"], row["flops"]) for row in rows] == [
        ("c", None, 5),
        ("a", "cpu", 7),
        ("a", "cuda", 7),
    ]
    assert rows[0]["eager_ms"] is None
    assert rows[1]["num_params"] == 1


def test_other_rows_are_refused() -> None:
    with pytest.raises(SchemaError, match="A row is not a run record"):
        costs([{"sample_id": "a", "speedup": "fast"}])
