"""Graphs that draw random numbers: every fault is found, and another stream is no fault."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from tests.adversarial.conftest import Trial
from tests.adversarial.random_checks import (
    check_has_stream_of_eager,
    check_is_right,
    check_is_wrong,
    random_verdict,
)
from tests.benchmark.samples import make_sample

MODULE = "tests.adversarial.random_candidates"
INPUTS = (Input("input", Value("float32", (4, 16))), Input("parameter", Value("float32", (8, 16))))
LINEAR = Op("torch.nn.functional.linear", (Ref(0), Ref(1)))
DROPOUT = Op("torch.nn.functional.dropout", (Ref(2), 0.5, True))
ONE = make_sample("random", LINEAR, DROPOUT, inputs=INPUTS)
SCALAR = make_sample("random_scalar", LINEAR, DROPOUT, Op("torch.mean", (Ref(3),)), inputs=INPUTS)
DEEP = make_sample(
    "random_deep",
    LINEAR,
    DROPOUT,
    Op("torch.nn.functional.linear", (Ref(3), Ref(3))),
    inputs=INPUTS,
)
KEYS = (Op("torch.rand_like", (Ref(0),)), Op("torch.add", (Ref(0), Ref(1))))
NOISE = make_sample("noise", *KEYS)
FIRST, SECOND = (Op("operator.getitem", (Ref(3), place)) for place in (0, 1))
ORDERS = {
    "argmax": (Op("torch.argmax", (Ref(2), -1)),),
    "argsort": (Op("torch.argsort", (Ref(2), -1)),),
    "positions_of_topk": (Op("torch.topk", (Ref(2), 2, -1)), SECOND),
    "positions_of_max": (Op("torch.max", (Ref(2), -1)), SECOND),
    "sorted_values": (Op("torch.sort", (Ref(2), -1)), FIRST),
}
TWO = dataclasses.replace(ONE, id="test/random_two", outputs=(Ref(3), Ref(2)))


def verdict(trial: Trial, candidate: str, sample: Sample) -> dict[str, Any]:
    return random_verdict(trial, candidate, sample, MODULE)


@pytest.mark.parametrize("sample", [ONE, SCALAR, DEEP, NOISE], ids=lambda sample: sample.id)
def test_another_stream_is_right(trial: Trial, sample: Sample) -> None:
    record = verdict(trial, "own_stream", sample)
    check_is_right(record)
    assert (record["null_t"], record["undecidable_reason"]) == (math.inf, None)


@pytest.mark.parametrize(
    ("candidate", "sample"),
    [
        ("ignores_dropout", ONE),
        ("drops_at_another_rate", DEEP),
        ("has_another_scale", ONE),
        ("same_mask_for_every_row", ONE),
        ("eager_in_the_first_call", ONE),
        ("three_masks_in_turn", DEEP),
        ("drops_at_another_rate", SCALAR),
        ("normal_for_uniform", NOISE),
    ],
)
def test_a_fault_is_found(trial: Trial, candidate: str, sample: Sample) -> None:
    check_is_wrong(verdict(trial, candidate, sample))


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_random_keys_are_judged_by_distribution(trial: Trial, name: str) -> None:
    sample = make_sample(f"random_{name}", *KEYS, *ORDERS[name])
    check_is_right(verdict(trial, "own_stream", sample))
    check_is_wrong(verdict(trial, "without_noise", sample))


def test_deterministic_outputs_are_compared_by_element(trial: Trial) -> None:
    right = verdict(trial, "own_stream", TWO)
    assert [output["is_random"] for output in right["outputs"]] == [True, False]
    assert right["outputs"][1]["min_t"] == -math.inf
    wrong = verdict(trial, "wrong_beside_the_draw", TWO)
    assert wrong["outputs"][0]["min_t"] <= -3 < wrong["outputs"][1]["min_t"] < math.inf


def test_eager_itself_draws_the_same_stream(trial: Trial) -> None:
    check_has_stream_of_eager(verdict(trial, "eager", ONE))


def test_a_decomposition_without_dropout_is_found(trial: Trial) -> None:
    """Torch decomposes the layers of an LSTM without the dropout between them."""
    shapes = [(3, 2, 8), (2, 2, 8), (2, 2, 8), *[(32, 8), (32, 8), (32,), (32,)] * 2]
    inputs = tuple(Input("input", Value("float32", shape)) for shape in shapes)
    states, weights = ListArg((Ref(1), Ref(2))), ListArg(tuple(map(Ref, range(3, 11))))
    lstm = Op("torch.lstm", (Ref(0), states, weights, True, 2, 0.5, True, False, False))
    sample = make_sample("random_lstm", lstm, Op("operator.getitem", (Ref(11), 0)), inputs=inputs)
    assert verdict(trial, "own_stream", sample)["min_t"] <= -3
    assert verdict(trial, "aot_eager", sample)["min_t"] == math.inf


def test_shapes_that_follow_a_draw_allow_no_verdict(trial: Trial) -> None:
    kept = Op("torch.gt", (Ref(1), 0.5))
    chosen = Op("torch.masked_select", (Ref(0), Ref(2)))
    sample = make_sample("random_shape", Op("torch.rand_like", (Ref(0),)), kept, chosen)
    record = verdict(trial, "own_stream", sample)
    assert record["undecidable_reason"] == (
        "The outputs are random, and their shapes differ from draw to draw."
    )
