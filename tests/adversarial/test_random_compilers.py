"""Graphs that draw random numbers, compiled by real compilers with their own random streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graphnet_datasets import run
from graphnet_datasets.benchmark.judging.random_outputs import SAME_STREAM
from graphnet_datasets.benchmark.settings import Settings
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.scores import by_sample
from tests.benchmark.samples import make_sample

SETTINGS = Settings(has_oracle=False, has_profile=False, num_threads=1, alone_calls=3)
X = Ref(0)


def random_sample(name: str, *ops: Op, shape: tuple[int, ...] = (8, 64)) -> Sample:
    """Return a sample with one input; the outputs are the last value and twice the input."""
    double = Op("torch.mul", (X, 2.0))
    return make_sample(
        f"random_{name}",
        double,
        *ops,
        inputs=(Input("input", Value("float32", shape)),),
        outputs=(Ref(1 + len(ops)), Ref(1)),
    )


DOUBLED = Ref(1)
SAMPLES = {
    "dropout": random_sample("dropout", Op("torch.nn.functional.dropout", (DOUBLED, 0.5, True))),
    "bernoulli": random_sample(
        "bernoulli", Op("torch.sigmoid", (X,)), Op("torch.bernoulli", (Ref(2),))
    ),
    "randn_like": random_sample(
        "randn_like", Op("torch.randn_like", (X,)), Op("torch.add", (X, Ref(2)))
    ),
    "rand": random_sample("rand", Op("torch.rand_like", (X,)), Op("torch.add", (X, Ref(2)))),
    "multinomial": random_sample(
        "multinomial", Op("torch.softmax", (X, -1)), Op("torch.multinomial", (Ref(2), 16, True))
    ),
    "dropout2d": random_sample(
        "dropout2d", Op("torch.nn.functional.dropout2d", (DOUBLED, 0.5, True)), shape=(8, 16, 4, 4)
    ),
    "rrelu": random_sample(
        "rrelu", Op("torch.nn.functional.rrelu", (DOUBLED,), (("training", True),))
    ),
    "attention": random_sample(
        "attention",
        Op(
            "torch.nn.functional.scaled_dot_product_attention",
            (X, X, X),
            (("dropout_p", 0.5),),
        ),
        shape=(2, 2, 8, 16),
    ),
    "native_dropout": random_sample(
        "native_dropout",
        Op("torch.native_dropout", (DOUBLED, 0.5, True)),
        Op("operator.getitem", (Ref(2), 0)),
    ),
}


def record_of(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a sample under inductor."""
    (record,) = run(SAMPLES[name], "inductor", options=options, settings=SETTINGS).to_list()
    assert record["status"] == "ok", record["error_message"]
    return record


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_inductor_is_right_with_its_own_stream(name: str) -> None:
    record = record_of(name, {})
    assert record["is_random"] is True
    assert [output["is_random"] for output in record["outputs"]] == [True, False]
    (row,) = by_sample([record])
    assert (row["is_right"], row["undecidable_reason"]) == (True, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dropout", "randn_like", "rand", "native_dropout"])
def test_fallback_random_draws_the_stream_of_eager(name: str) -> None:
    record = record_of(name, {"fallback_random": True})
    assert record["outputs"][0]["random_test"] == SAME_STREAM
    assert [output["mismatch_share"] for output in record["outputs"]] == [0.0, 0.0]
