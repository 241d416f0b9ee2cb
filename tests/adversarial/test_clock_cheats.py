"""However a candidate forges its times, none gets into a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from tests.adversarial.cheats import WORK_S
from tests.adversarial.clock_cheats import CHEATS, EARLY, LATE
from tests.adversarial.conftest import SETTINGS, Trial, make_trial, reason_of_tampering

LIMIT = 1.05
"""The documented limit: by how much a candidate may look faster than it is."""


@pytest.fixture(scope="module")
def patient_trial() -> Iterator[Trial]:
    """Return a trial with enough pairs that a few interruptions do not change the verdict."""
    timing = dataclasses.replace(SETTINGS.timing, min_pairs=20, max_pairs=20)
    runner = SampleRunner("cpu", dataclasses.replace(SETTINGS, timing=timing))
    yield make_trial(runner)
    runner.close()


@pytest.mark.parametrize("cheat", [cheat.__name__ for cheat in CHEATS])
def test_forged_times_are_refused_or_are_not_those_of_the_record(trial: Trial, cheat: str) -> None:
    record = trial(cheat, module="tests.adversarial.clock_cheats")
    if record["status"] == "ok":
        assert min(record["candidate_latency_ms"]) * LIMIT >= 1000 * WORK_S
        assert record["clock"] == "kernel"
    else:
        assert (record["status"], record["reason"]) == ("run_failed", "tampering")
        assert record["speedup"] is None


@pytest.mark.parametrize("cheat", [cheat.__name__ for cheat in LATE])
def test_work_after_the_end_of_a_call_shows_before_its_outputs_do(
    patient_trial: Trial, cheat: str
) -> None:
    record = patient_trial(cheat, module="tests.adversarial.clock_cheats")
    if record["status"] == "ok":
        assert "late_outputs" in [text.partition(":")[0] for text in record["warnings"]]
        honest = max(record["baseline_latency_ms"]) / (1000 * WORK_S)
        assert record["speedup_low"] <= 1.3 * honest
    else:
        assert (record["status"], record["reason"]) == ("run_failed", "tampering")


@pytest.mark.parametrize("cheat", EARLY)
def test_work_before_the_beginning_of_a_call_is_refused(trial: Trial, cheat: str) -> None:
    reason = reason_of_tampering(trial(cheat, module="tests.adversarial.clock_cheats"))
    assert "works before the clock is started" in reason
