"""Graphs of gradients of paddle: what its own static autograd appends to a program."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from graphnet_datasets import Sample
from graphnet_datasets.errors import GradientError, UncheckedOperatorError
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from graphnet_datasets.transforms import backward, differentiate

pytest.importorskip("paddle", reason="paddle is not installed")
pytestmark = pytest.mark.paddle

X = Input("input", Value("float32", (4, 6)))
WEIGHT = Input("parameter", Value("float32", (6, 6)), statistics=Statistics(0.0, 0.4))
ROW = Input("parameter", Value("float32", (6,)))


def core(name: str, *args: Any) -> Op:
    return Op(f"paddle._C_ops.{name}", args)


def graph(*ops: Op, inputs: tuple[Input, ...] = (X,)) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),)
    return Sample("test/whole", "paddle", "other", inputs, ops, outputs)


CASES = {
    "a layer": graph(
        core("matmul", Ref(0), Ref(1), False, False),
        core("add", Ref(3), Ref(2)),
        core("tanh", Ref(4)),
        inputs=(X, WEIGHT, ROW),
    ),
    "a product that broadcasts": graph(
        core("multiply", Ref(0), Ref(1)), core("softmax", Ref(2), -1), inputs=(X, ROW)
    ),
    "a concatenation": graph(
        core("relu", Ref(0)),
        core("concat", ListArg((Ref(0), Ref(1))), 1),
        core("multiply", Ref(2), Ref(2)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_graph_gives_the_gradients_of_eager_autograd(case: str) -> None:
    made = differentiate(CASES[case], of="all", allow_unchecked_operators=True)
    assert made.largest_t == -math.inf
    for each in (made.joint, made.forward, made.backward):
        assert each.provenance.parent_id == "test/whole"
        assert Sample.from_row(each.to_row()) == each
    outputs = json.loads(made.joint.provenance.metadata)["outputs"]
    assert outputs[:2] == ["output 0", "gradient of `input_0`"]


def test_saved_tensors_have_the_statistics_of_a_run() -> None:
    made = backward(CASES["a layer"], "backward", allow_unchecked_operators=True)
    saved = [each for each in made.inputs if each.source_name.startswith("saved_")]
    assert saved and all(each.statistics is not None for each in saved)


def test_operators_of_gradients_are_unchecked() -> None:
    with pytest.raises(UncheckedOperatorError):
        backward(CASES["a layer"])


@pytest.mark.parametrize(
    ("sample", "options", "message"),
    [
        (
            CASES["a layer"],
            {"partition": "min_cut"},
            "can only be partitioned as paddle's autograd does",
        ),
        (
            graph(core("dropout", Ref(0), None, 0.5, False, "upscale_in_train", 0, False)),
            {},
            "draws random numbers",
        ),
        (
            graph(
                core("layer_norm", Ref(0), None, None, 1e-5, 1), Op("operator.getitem", (Ref(1), 0))
            ),
            {},
            "cannot be differentiated",
        ),
    ],
)
def test_nondifferentiable_graphs_are_refused(
    sample: Sample, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(GradientError, match=message):
        backward(sample, allow_unchecked_operators=True, **options)
