"""Float64 as the judge of both arms: where it can be had, what it says, and that it fails alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from graphnet_datasets.benchmark.child.arms import Workload
from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.frameworks import make_inputs
from graphnet_datasets.frameworks.torch.oracle import float64_outputs
from graphnet_datasets.frameworks.torch.runtime import TorchRuntime
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Named, Ref
from tests.adversarial.conftest import SETTINGS, Trial, make_trial
from tests.benchmark import samples
from tests.benchmark.samples import LINEAR, make_sample

LOWERED = make_sample(
    "lowered",
    Op("torch.Tensor.to", (Ref(0), Named("dtype", "bfloat16"))),
    Op("torch.Tensor.float", (Ref(1),)),
    Op("torch.Tensor.exp", (Ref(2),)),
)


def workload(sample: Sample, weights: str = "parameters") -> Workload:
    made = Workload(
        TorchRuntime("cpu", torch.get_num_threads()),
        sample,
        device="cpu",
        weights=weights,  # type: ignore[arg-type] (a parameter of the tests)
        mode="replay",
        seed=3,
    )
    made.note_writes()
    return made


@pytest.fixture(autouse=True)
def gradients() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)


@pytest.mark.parametrize("weights", ["parameters", "inputs"])
def test_the_same_values_are_computed_with_more_digits(weights: str) -> None:
    inputs = make_inputs(LINEAR, seed=3)
    expected = torch.relu(
        torch.nn.functional.linear(inputs["input_0"].double(), inputs["parameter_0"].double())
    )
    assert torch.equal(float64_outputs(workload(LINEAR, weights), LINEAR), expected)


def test_casts_of_the_graph_are_widened() -> None:
    expected = make_inputs(LOWERED, seed=3)["input_0"].double().exp()
    assert torch.equal(float64_outputs(workload(LOWERED), LOWERED), expected)


def test_written_tensors_are_part_of_the_outputs() -> None:
    sample = samples.RUNNING_STATISTICS
    outputs, effects = float64_outputs(workload(sample), sample)
    assert {each.dtype for each in (outputs, *effects)} == {torch.float64}
    assert len(effects) == 2
    fresh = make_inputs(sample, seed=3)
    mean = 0.9 * fresh["buffer_0"].double() + 0.1 * fresh["input_0"].double().mean(0)
    assert torch.allclose(effects[0], mean, rtol=1e-12, atol=1e-12)


def test_random_numbers_have_no_oracle_but_a_dropout_that_is_off_has_one() -> None:
    assert float64_outputs(workload(samples.DROPOUT), samples.DROPOUT) is None
    off = make_sample("off", Op("torch.nn.functional.dropout", (Ref(0), 0.5, False)))
    assert float64_outputs(workload(off), off).dtype == torch.float64


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    runner = SampleRunner("cpu", SETTINGS)
    yield make_trial(runner)
    runner.close()


@pytest.mark.slow
def test_a_graph_without_float64_is_judged_without(trial: Trial) -> None:
    inputs = (Input("input", Value("float32", (4, 16))), Input("input", Value("int32", (4, 16))))
    sample = make_sample(
        "bits",
        Op("torch.Tensor.view", (Ref(0), Named("dtype", "int32"))),
        Op("operator.add", (Ref(2), Ref(1))),
        inputs=inputs,
    )
    record = trial("eager", sample)
    assert record["status"] == "ok", record["error_message"]
    assert record["outputs"][0]["rmse_baseline"] is None
    (warning,) = (each for each in record["warnings"] if "oracle" in each)
    assert warning.startswith("no_oracle: eager could not be run in float64: RuntimeError: ")
