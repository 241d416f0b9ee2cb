"""Paddle graphs that draw random numbers: every fault is found, and another stream is no fault."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from tests.adversarial.conftest import Trial
from tests.adversarial.random_checks import (
    check_has_stream_of_eager,
    check_is_right,
    check_is_wrong,
    random_verdict,
)
from tests.benchmark.samples import make_sample

pytestmark = pytest.mark.paddle

MODULE = "tests.adversarial.random_paddle_candidates"
CORE = "paddle._C_ops."
FLOAT32 = Named("dtype", "float32")
INPUTS = (Input("input", Value("float32", (4, 16))), Input("parameter", Value("float32", (16, 8))))


def paddle_sample(
    name: str, *ops: Op, inputs: tuple[Input, ...] = INPUTS, outputs: Any = None
) -> Sample:
    sample = make_sample(name, *ops, inputs=inputs, outputs=outputs)
    return dataclasses.replace(sample, framework="paddle")


def uniform(*shape: int) -> Op:
    bounds = Ref(1), Ref(2)
    return Op(f"{CORE}uniform", (ListArg(shape), FLOAT32, *bounds, 0, Named("place", "expected")))


def full(value: float) -> Op:
    return Op(f"{CORE}full", (ListArg((1,)), value, FLOAT32, Named("place", "cpu")))


MATMUL = Op(f"{CORE}matmul", (Ref(0), Ref(1), False, False))
DROPOUT = Op(f"{CORE}dropout", (Ref(2), None, 0.5, False, "upscale_in_train", 0, False))
DROPPED = Op("operator.getitem", (Ref(3), 0))
ONE = paddle_sample("random", MATMUL, DROPOUT, DROPPED)
DEEP = paddle_sample(
    "random_deep", MATMUL, DROPOUT, DROPPED, Op(f"{CORE}matmul", (Ref(4), Ref(4), False, True))
)
NOISE = paddle_sample(
    "noise",
    full(0.0),
    full(1.0),
    uniform(4, 16),
    Op(f"{CORE}add", (Ref(0), Ref(3))),
    inputs=INPUTS[:1],
)
TWO = dataclasses.replace(ONE, id="test/random_two", outputs=(Ref(4), Ref(2)))


def verdict(trial: Trial, candidate: str, sample: Sample) -> dict[str, Any]:
    return random_verdict(trial, candidate, sample, MODULE)


@pytest.mark.parametrize("sample", [ONE, DEEP, NOISE], ids=lambda sample: sample.id)
def test_another_stream_is_right(trial: Trial, sample: Sample) -> None:
    record = verdict(trial, "own_stream", sample)
    check_is_right(record)
    assert record["undecidable_reason"] is None


@pytest.mark.parametrize(
    ("candidate", "sample"),
    [
        ("ignores_dropout", ONE),
        ("drops_at_another_rate", ONE),
        ("drops_at_another_rate", DEEP),
        ("has_another_scale", ONE),
        ("same_mask_in_every_call", DEEP),
        ("normal_for_uniform", NOISE),
    ],
)
def test_a_fault_is_found(trial: Trial, candidate: str, sample: Sample) -> None:
    check_is_wrong(verdict(trial, candidate, sample))


def test_deterministic_outputs_are_compared_by_element(trial: Trial) -> None:
    record = verdict(trial, "own_stream", TWO)
    assert [output["is_random"] for output in record["outputs"]] == [True, False]
    assert record["outputs"][1]["min_t"] == -math.inf


@pytest.mark.parametrize("arm", ["paddle-eager", "paddle-to-static"])
def test_arms_with_the_stream_of_eager_agree_in_every_element(trial: Trial, arm: str) -> None:
    check_has_stream_of_eager(verdict(trial, arm, ONE))


def test_paddle_inference_ignores_dropout(trial: Trial) -> None:
    """Its passes remove dropout, so it is wrong on a graph in train mode."""
    assert verdict(trial, "paddle-inference", ONE)["min_t"] == math.inf
