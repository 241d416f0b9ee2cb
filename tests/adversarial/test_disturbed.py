"""A candidate that makes eager slow beside it gains nothing by that."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from graphnet_datasets.benchmark import TimingSettings
from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.benchmark.judging import judging
from graphnet_datasets.isolation import Outcome
from tests.adversarial.conftest import SETTINGS, Trial, make_trial

MODULE = "tests.adversarial.disturbers"


@pytest.fixture(scope="module")
def long_trial() -> Iterator[Trial]:
    """Return a trial of as many calls as it takes to tell eager from eager."""
    settings = dataclasses.replace(
        SETTINGS,
        timing=TimingSettings(
            min_pairs=30, max_pairs=60, budget_s=1, hard_budget_s=5, warmup_s=0, min_warmup_calls=1
        ),
        alone_calls=60,
    )
    runner = SampleRunner("cpu", settings)
    yield make_trial(runner)
    runner.close()


def moments_of_calls(outcome: Outcome) -> set[str]:
    """Return what the kernel noted around the timed calls of a process: inputs, call, a look."""
    labels = [stamp.label for stamp in outcome.stamps]
    timed = labels[labels.index("phase run") + 1 :]
    signs = "".join(label[0] for label in timed)
    return {signs[place : place + 4] for place in range(0, len(signs), 4)}


@pytest.mark.parametrize(
    "candidate",
    ["hooks_every_call", "hooks_three_calls_of_four", "hooks_half_of_the_calls"],
)
def test_a_slowed_baseline_is_timed_again_in_a_process_of_its_own(
    long_trial: Trial, candidate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_turns: list[Outcome] = []
    take = judging.take_turn_times

    def see(record: dict[str, Any], messages: Any, outcome: Outcome, eager: Outcome) -> list[str]:
        in_turns.extend((outcome, eager))
        return take(record, messages, outcome, eager)

    monkeypatch.setattr(judging, "take_turn_times", see)
    record = long_trial(candidate, module=MODULE)
    assert record["status"] == "ok", record["error_message"]
    if record["is_noisy"] and record["timed_in"] == "pairs":
        assert record["speedup_low"] < 3  # a busy machine explains the times; the interval is wide
        return
    assert (record["is_baseline_disturbed"], record["timed_in"]) == (True, "turns")
    assert record["paired_speedup"] > 5
    assert record["speedup"] < 3
    assert record["clock"] == "kernel"
    assert len(record["baseline_latency_ms"]) == len(record["candidate_latency_ms"])
    (warning,) = (text for text in record["warnings"] if text.startswith("baseline_disturbed"))
    assert warning.endswith("; the record holds the turns.")
    assert [moments_of_calls(outcome) for outcome in in_turns] == [{"<+-="}, {"<+-="}]


@pytest.mark.parametrize("candidate", ["takes_the_interpreter", "finds_eager_and_wraps_it"])
def test_however_eager_is_slowed_no_speedup_is_recorded_unflagged(
    long_trial: Trial, candidate: str
) -> None:
    record = long_trial(candidate, module=MODULE)
    if record["status"] == "ok":
        is_flagged = record["is_baseline_disturbed"] or record["is_noisy"]
        assert record["speedup_low"] < 1.5 or (is_flagged and record["timed_in"] == "turns")
    else:
        assert record["reason"] == "tampering"


def test_an_honest_candidate_is_timed_in_pairs(long_trial: Trial) -> None:
    record = long_trial("eager")
    assert record["status"] == "ok"
    # A machine that is busy with other things may slow one process alone.
    assert record["timed_in"] == "pairs" or record["is_noisy"]
    assert record["speedup_low"] <= 1.3
