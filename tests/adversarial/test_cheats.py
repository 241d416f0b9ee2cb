"""Every way to cheat that is known, and what gives each away."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import pytest

from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from tests.adversarial.cheats import WORK_S
from tests.adversarial.conftest import SETTINGS, Trial, make_trial, reason_of_tampering
from tests.benchmark.samples import make_sample

LOOSE_T = -3.0
"""A wrong output of these samples passes at no t below this."""

BIASED = make_sample(
    "biased",
    Op("torch.nn.functional.linear", (Ref(0), Ref(1), Ref(2))),
    Op("torch.relu", (Ref(3),)),
    inputs=(
        Input("input", Value("float32", (4, 16))),
        Input("parameter", Value("float32", (8, 16))),
        Input(
            "parameter", Value("float32", (8,)), statistics=Statistics(mean=0, std=0, min=0, max=0)
        ),
    ),
)
ACCUSATIONS = {"less_accurate_than_eager", "impossibly_fast"}
MODULE = "tests.adversarial.cheats"


@pytest.fixture
def cheat(trial: Trial) -> Trial:
    return functools.partial(trial, module=MODULE)


def is_wrong(record: dict[str, Any]) -> bool:
    assert record["status"] == "ok", record["error_message"]
    return record["min_t"] > LOOSE_T


def warnings_of(record: dict[str, Any]) -> list[str]:
    return [warning.partition(":")[0] for warning in record["warnings"]]


def test_an_honest_candidate_is_accused_of_nothing(trial: Trial) -> None:
    record = trial("eager")
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)
    assert not ACCUSATIONS & set(warnings_of(record))
    (output,) = record["outputs"]
    assert 0 < output["rmse_baseline"] == output["rmse_candidate"] < 1e-5


@pytest.mark.parametrize("key", ["object", "address", "value", "first_element"])
def test_a_replayed_output_is_wrong_or_was_never_asked_for_again(cheat: Trial, key: str) -> None:
    record = cheat(f"replays_by_{key}")
    has_skipped_work = min(record["candidate_latency_ms"]) < 1000 * WORK_S
    assert is_wrong(record) or not has_skipped_work


def test_no_value_is_asked_for_twice(cheat: Trial) -> None:
    record = cheat("replays_by_value")
    assert min(record["candidate_latency_ms"]) >= 1000 * WORK_S
    assert record["min_t"] == -math.inf


@pytest.mark.parametrize(
    "candidate",
    ["replays_in_a_rotation", "zeros", "batches_work", "works_in_the_background"],
)
def test_skipped_work_is_wrong(cheat: Trial, candidate: str) -> None:
    assert is_wrong(cheat(candidate))


@pytest.fixture(scope="module")
def many_calls() -> Iterator[Trial]:
    """A fixed number of calls: fewer than are judged, so that one that was skipped is found."""
    timing = dataclasses.replace(SETTINGS.timing, min_pairs=200, max_pairs=200, hard_budget_s=60)
    runner = SampleRunner("cpu", dataclasses.replace(SETTINGS, timing=timing))
    yield functools.partial(make_trial(runner), module=MODULE)
    runner.close()


@pytest.mark.parametrize("candidate", ["skips_1_percent", "skips_5_percent", "skips_30_percent"])
def test_any_share_of_skipped_calls_is_wrong(many_calls: Trial, candidate: str) -> None:
    record = many_calls(candidate)
    assert len(record["candidate_latency_ms"]) == 200
    assert is_wrong(record)
    wrong = [call for call in record["judged"] if call["candidate_hash"] != call["baseline_hash"]]
    assert len(record["judged"]) == 201
    assert 1 <= len(wrong) < 80


def test_zeros_pass_where_the_record_says_that_zeros_pass(cheat: Trial) -> None:
    record = cheat("zeros")
    assert record["min_t"] >= record["null_t"]


def test_lowered_precision_is_farther_from_float64_than_eager(cheat: Trial) -> None:
    record = cheat("lowers_precision")
    (output,) = record["outputs"]
    assert output["rmse_candidate"] > 100 * output["rmse_baseline"] > 0
    assert ACCUSATIONS & set(warnings_of(record)) == {"less_accurate_than_eager"}
    assert record["min_t"] > -4


@pytest.mark.slow
def test_a_dropped_bias_shows_where_no_tensor_is_constant(cheat: Trial, probe_trial: Trial) -> None:
    assert cheat("drops_bias", BIASED)["min_t"] < -6
    assert is_wrong(probe_trial("drops_bias", BIASED, module=MODULE))


def test_inputs_are_looked_at_after_timed_calls_too(cheat: Trial) -> None:
    record = cheat("writes_to_inputs_later")
    assert (record["status"], record["reason"]) == ("output_mismatch", "input_mutation")
    assert record["error_message"] == "The candidate wrote to the input `input_0`."


def test_forged_messages_are_a_failure(cheat: Trial) -> None:
    record = cheat("writes_garbage_everywhere")
    assert (record["status"], record["reason"]) == ("run_failed", "crash")
    assert record["error_type"] == "ProtocolError"
    assert record["speedup"] is None


def test_later_calls_are_judged_too(trial: Trial) -> None:
    assert trial("later_calls_wrong")["min_t"] > -5


def test_uninitialised_memory_holds_no_answer(trial: Trial) -> None:
    assert trial("uninitialised")["min_t"] > -3


def test_patched_clocks_change_no_time(trial: Trial) -> None:
    record = trial("patches_clocks")
    assert record["status"] == "ok"
    assert min(record["candidate_latency_ms"]) > 1.9


def test_the_expected_outputs_are_nowhere_while_a_candidate_runs(trial: Trial) -> None:
    record = trial("reads_expected_outputs")
    assert record["status"] == "ok"
    assert record["min_t"] > -3


def test_a_forged_record_is_a_failure(cheat: Trial) -> None:
    """Without the key of the worker's messages nothing that is written counts as one."""
    record = cheat("forges_a_record")
    assert (record["status"], record["reason"]) == ("run_failed", "crash")
    assert record["error_type"] == "ProtocolError"


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (
            "speaks_through_the_worker",
            "The worker reported 4 pairs of calls, but the kernel recorded 0",
        ),
        (
            "replaces_the_clock",
            "The candidate replaced `graphnet_datasets.timing.clocks.WallClock.measure`, a part "
            "of what times it.",
        ),
        ("sets_the_clock_forward", "ms by the clock of the kernel, but"),
    ],
)
def test_forged_times_are_a_failure(cheat: Trial, candidate: str, message: str) -> None:
    assert message in reason_of_tampering(cheat(candidate))
