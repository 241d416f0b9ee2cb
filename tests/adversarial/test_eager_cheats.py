"""Whoever lives on eager's work, or on that of its own first calls, is wrong or found out."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.benchmark import TimingSettings
from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from tests.adversarial.conftest import SETTINGS, Trial, make_trial
from tests.benchmark.samples import LINEAR, make_sample

MODULE = "tests.adversarial.eager_cheats"
LOOSE_T = -3.0

IDS = np.array([[5, 3, 9, 2, 7, 1, 4, 8], [9, 9, 2, 6, 3, 5, 1, 7]], np.int64)
WORDS = make_sample(
    "words",
    Op("torch.nn.functional.embedding", (Ref(0), Ref(1))),
    Op("torch.relu", (Ref(2),)),
    inputs=(
        Input("input", Value("int64", IDS.shape), "L_ids_", data=IDS.tobytes()),
        Input("parameter", Value("float32", (50, 8))),
    ),
)
"""A graph whose only data are stored integers."""

STORED_SUM = make_sample(
    "stored_sum",
    Op("torch.Tensor.add", (Ref(0), Ref(1))),
    inputs=(
        Input("buffer", Value("float32", (4, 16))),
        Input("buffer", Value("float32", (4, 16))),
    ),
)
"""A graph without any data."""


@pytest.fixture
def cheat(trial: Trial) -> Trial:
    return functools.partial(trial, module=MODULE)


@pytest.fixture(scope="module")
def long_trial() -> Iterator[Trial]:
    """Runs of forty pairs, of which a few calls are skipped."""
    timing = TimingSettings(
        min_pairs=40, max_pairs=40, budget_s=0, hard_budget_s=30, warmup_s=0, min_warmup_calls=1
    )
    runner = SampleRunner("cpu", dataclasses.replace(SETTINGS, timing=timing))
    yield make_trial(runner)
    runner.close()


def is_found_out(record: dict[str, Any]) -> bool:
    """Whether no speedup comes out of the run: refused, or wrong at every usual tolerance."""
    if record["status"] != "ok":
        assert record["speedup"] is None or record["status"] == "output_mismatch"
        return True
    return record["min_t"] > LOOSE_T


@pytest.mark.parametrize(
    "candidate",
    [
        "hooks_eager",
        "hooks_eager_and_copies",
        "replaces_eagers_forward",
        "replaces_eagers_call",
    ],
)
def test_eagers_outputs_are_no_answer(cheat: Trial, candidate: str) -> None:
    assert is_found_out(cheat(candidate))


def test_a_hook_on_all_modules_is_removed_before_the_calls(cheat: Trial) -> None:
    record = cheat("hooks_all_modules")
    assert any(text.startswith("torch hooks on all modules") for text in record["changed_state"])
    # Without eager's outputs the candidate computes its own.
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ("hooks_eager", "The candidate changed what eager runs on: a hook on eager's module."),
        (
            "slows_an_operator_of_eager",
            "The candidate changed what eager runs on: `torch.relu`.",
        ),
        (
            "slows_eagers_weights",
            "The candidate changed what eager runs on: a weight of eager's module.",
        ),
        ("writes_to_eagers_weights", "The candidate wrote to eager's weight `parameter_0`."),
    ],
)
def test_changes_to_eager_are_detected(cheat: Trial, candidate: str, message: str) -> None:
    record = cheat(candidate)
    assert (record["status"], record["reason"]) == ("run_failed", "tampering")
    assert record["error_message"] == message
    assert record["speedup"] is None


CACHES = ["for_ever", "by_shape", "by_id", "by_address", "by_first_elements", "by_rounded_sum"]


@pytest.mark.parametrize("key", CACHES)
@pytest.mark.parametrize("sample", [LINEAR, WORDS], ids=["floats", "stored_integers"])
def test_outputs_of_earlier_calls_are_no_answer(long_trial: Trial, key: str, sample: Any) -> None:
    record = long_trial(f"caches_{key}", sample, module=MODULE)
    # Memory that came back at another address was computed anew, and saved nothing.
    is_honest = key in ("by_id", "by_address") and record["min_t"] == -math.inf
    assert is_found_out(record) or is_honest


def test_memory_that_is_returned_again_is_overwritten(cheat: Trial) -> None:
    assert cheat("poisons_no_more", WORDS)["min_t"] == math.inf


@pytest.mark.parametrize(
    "candidate",
    ["skips_every_third", "skips_a_third_at_random", "skips_one_late_call", "skips_rows"],
)
@pytest.mark.parametrize("sample", [LINEAR, WORDS], ids=["floats", "stored_integers"])
def test_each_timed_call_is_judged(long_trial: Trial, candidate: str, sample: Any) -> None:
    record = long_trial(candidate, sample, module=MODULE)
    assert is_found_out(record)
    timed = [each for each in record["judged"] if each["is_candidate_first"] is not None]
    assert len({each["seed"] for each in timed}) == 40
    assert {each["is_candidate_first"] for each in timed} == {True, False}


@pytest.mark.parametrize("sample", [LINEAR, WORDS], ids=["floats", "stored_integers"])
def test_an_honest_candidate_is_right_on_every_set(trial: Trial, sample: Any) -> None:
    record = trial("eager", sample)
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)
    assert all(each["baseline_hash"] == each["candidate_hash"] for each in record["judged"])
    for name in ("seed", "baseline_hash"):
        assert len({each[name] for each in record["judged"]}) == 4
    (output,) = record["outputs"]
    assert output["constant_t"] > LOOSE_T
    assert record["null_t"] > LOOSE_T


def test_a_graph_without_anything_to_vary_is_not_timed(trial: Trial) -> None:
    record = trial("eager", STORED_SUM)
    assert (record["status"], record["reason"]) == ("baseline_failed", "nothing_varies")
    assert record["speedup"] is None
    assert record["error_message"].startswith("Eager returns the same outputs for all inputs")


@pytest.mark.slow
def test_weights_that_are_inputs_vary_too() -> None:
    runner = SampleRunner("cpu", dataclasses.replace(SETTINGS, weights="inputs"))
    try:
        trial = make_trial(runner)
        assert trial("eager", STORED_SUM)["min_t"] == -math.inf
        assert is_found_out(trial("caches_for_ever", STORED_SUM, module=MODULE))
    finally:
        runner.close()


FAINT = make_sample(
    "faint",
    Op("torch.nn.functional.linear", (Ref(0), Ref(1), Ref(2))),
    inputs=(
        Input("input", Value("float32", (4, 16))),
        Input("parameter", Value("float32", (8, 16)), statistics=Statistics(mean=0, std=1e-5)),
        Input("parameter", Value("float32", (8,)), statistics=Statistics(mean=1, std=0.3)),
    ),
)
"""A graph whose outputs move by a hundred thousandth of their size with the inputs."""


@pytest.mark.parametrize(
    "candidate", ["caches_for_ever", "skips_a_third_at_random", "skips_one_late_call"]
)
def test_a_stored_answer_that_passes_at_every_usual_tolerance_is_detected(
    long_trial: Trial, candidate: str
) -> None:
    record = long_trial(candidate, FAINT, module=MODULE)
    assert (record["status"], record["reason"]) == ("output_mismatch", "output_constant")
    assert "the outputs do not follow their inputs as eager's do" in record["error_message"]
    assert record["outputs"][0]["constant_t"] < LOOSE_T


@pytest.mark.parametrize("compiler", ["eager", "torchscript"])
def test_right_answers_are_right_there(long_trial: Trial, compiler: str) -> None:
    record = long_trial(compiler, FAINT)
    assert record["status"] == "ok"
    assert record["min_t"] < -5
    assert record["null_t"] == record["outputs"][0]["constant_t"] < LOOSE_T


FOLDED = make_sample(
    "folded",
    Op("torch.relu", (Ref(0),)),
    Op("torch.Tensor.neg", (Ref(1),)),
    inputs=(
        Input("input", Value("float32", (4, 16))),
        Input("parameter", Value("float32", (4, 16))),
    ),
    outputs=ListArg((Ref(2), Ref(3))),
)


def test_an_output_that_may_be_folded_may_be_returned_again(trial: Trial) -> None:
    """A compiler may hold the only copy of what follows from weights alone."""
    record = trial("folds_constants", FOLDED, module=MODULE)
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)
