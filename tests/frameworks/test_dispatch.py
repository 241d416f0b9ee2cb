"""The dispatch by framework: the same three functions for every sample."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks import calibrate, make_inputs, materialize, print_source
from graphnet_datasets.frameworks.torch.materialize import materialize as materialize_torch
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref

X = Input("input", Value("float32", (2, 3)), "hidden_states")
RELU = Sample("example/relu", "torch", "other", (X,), (Op("torch.relu", (Ref(0),)),), Ref(1))

WITHOUT = """
import sys
sys.modules[{framework!r}] = None
from graphnet_datasets.errors import MissingExtraError
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.sample import Sample
sample = Sample("example/empty", {framework!r}, "other", (), (), ())
for call in (materialize, make_inputs):
    try:
        call(sample)
    except MissingExtraError as error:
        print(error)
"""


def test_a_sample_of_torch_runs_and_prints() -> None:
    inputs = make_inputs(RELU, seed=3)
    assert (materialize(RELU)(**inputs) == inputs["input_0"].relu()).all()
    assert "input_0" in print_source(RELU)
    assert "hidden_states" in print_source(RELU, names="source")
    assert RELU.to_source() == print_source(RELU)


def test_an_unknown_kind_of_names_is_refused() -> None:
    with pytest.raises(MaterializeError) as caught:
        print_source(RELU, names="short")  # type: ignore[arg-type]
    assert str(caught.value) == ("`names='short'` is unknown (accepted: 'canonical', 'source').")


def test_a_sample_of_another_framework_is_no_sample_of_torch() -> None:
    sample = Sample("example/empty", "paddle", "other", (), (), ())
    with pytest.raises(MaterializeError) as caught:
        materialize_torch(sample)
    assert str(caught.value) == "`example/empty` is a sample of paddle, not of torch."


@pytest.mark.parametrize(("framework", "package"), [("torch", "torch"), ("paddle", "paddlepaddle")])
def test_a_framework_that_is_not_installed_is_named_with_its_extra(
    framework: str, package: str
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(framework=framework)],
        check=True,
        capture_output=True,
        text=True,
    )
    message = (
        f"Running samples of {framework} needs the package `{package}`, which is not installed. "
        f"Install it with `pip install 'graphnet-datasets[{framework}]'`."
    )
    assert result.stdout.splitlines() == [message, message]


def test_the_row_of_a_sample_runs_like_the_sample() -> None:
    row = RELU.to_row()
    inputs = make_inputs(row, seed=3)
    assert (materialize(row)(**inputs) == inputs["input_0"].relu()).all()


@pytest.mark.parametrize(
    ("function", "argument", "kind"),
    [(materialize, [RELU], "list"), (make_inputs, "cv", "str"), (calibrate, None, "NoneType")],
)
def test_something_else_than_a_sample_is_refused(function: Any, argument: Any, kind: str) -> None:
    with pytest.raises(MaterializeError) as caught:
        function(argument)
    name = function.__name__
    assert str(caught.value) == (
        f"`{name}` takes a `Sample` or a row of a dataset, not a `{kind}`. Pass one row: "
        f"`{name}(dataset[0])`, or `{name}(Sample.from_row(dataset[0]))`."
    )
