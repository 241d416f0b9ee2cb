"""The order of the worst samples, and the limit of time."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark import Settings, run_records
from graphnet_datasets.diagnosis.choosing import choose_subset
from graphnet_datasets.diagnosis.diagnosing import choose_worst, diagnose
from graphnet_datasets.diagnosis.page import write_diagnosis
from graphnet_datasets.storage.table import write_table
from tests.tables import chain

QUICK: dict[str, Any] = {"has_oracle": False, "has_profile": False, "num_threads": 1}


def wrong(name: str, min_t: float) -> dict[str, Any]:
    return {"sample_id": name, "status": "ok", "min_t": min_t, "speedup": 1.0}


def failed(name: str, message: str) -> dict[str, Any]:
    return {"sample_id": name, "status": "run_failed", "error_message": message}


def slow(name: str, speedup: float) -> dict[str, Any]:
    bounds = {"speedup_low": speedup * 0.9, "speedup_high": speedup * 1.1}
    return {"sample_id": name, "status": "ok", "min_t": -9.0, "speedup": speedup, **bounds}


def test_different_failures_come_first() -> None:
    records = [
        *(failed(f"crash-{number}", "SIGSEGV") for number in range(3)),
        failed("error", "KeyError: 'pow'"),
        *(wrong("small", 0.0), wrong("large", 3.0), wrong("compiler_bugs/x/y", 4.0)),
        *(slow("slow", 0.1), slow("fast", 2.0), slow("noise", 0.88)),
    ]
    worst = [record["sample_id"] for record in choose_worst(records, 99)]
    # One of each kind, then the rest; a slow sample never displaces a wrong one.
    assert worst[:4] == ["large", "compiler_bugs/x/y", "crash-0", "error"]
    assert worst[4:] == ["small", "crash-1", "crash-2", "slow"]


@pytest.mark.slow
@pytest.mark.torch
def test_a_run_stops_after_the_record_at_which_its_time_is_up() -> None:
    samples = [chain(f"test/chain-{number}", number) for number in (1, 2)]
    table = run_records(samples, "eager", seconds=0.0, jobs=1, **QUICK)
    assert table["sample_id"].to_pylist() == ["test/chain-1"]


@pytest.mark.torch
def test_a_right_compiler_has_no_findings(tmp_path: Path) -> None:
    path = write_table([chain("test/one", 2)], tmp_path / "samples.parquet")
    subset = choose_subset("eager", 1, dataset=str(path))
    diagnosis = diagnose(
        "eager", subset, tmp_path / "out", dataset=str(path), settings=Settings(**QUICK)
    )
    assert (diagnosis.findings, diagnosis.has_failures) == ((), False)
    lines = {label: text for label, text, _ in diagnosis.lines()}
    assert lines["Verdict"] == "eager: 1 of 1 right"
    assert "no interval: 1 model family is too few" in lines["Score"]
    page = write_diagnosis(dataclasses.replace(diagnosis, compiler="<b>.py:f")).read_text()
    assert "<h1>Diagnosis of &lt;b&gt;.py:f</h1>" in page and "<b>" not in page
    assert "No sample is wrong, failed or clearly slower than eager." in page
    assert "src=" not in page and "http" not in page  # nothing is loaded
