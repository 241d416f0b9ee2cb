"""Float64 as the judge of paddle's arms, and the clock of paddle on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphnet_datasets import make_inputs
from graphnet_datasets.benchmark import Settings
from graphnet_datasets.benchmark.child import setup
from graphnet_datasets.benchmark.child.arms import Workload
from graphnet_datasets.benchmark.worker_job import WorkerJob
from graphnet_datasets.sample import Op, Sample
from graphnet_datasets.sample.arguments import Named, Ref

from ..frameworks.paddle.installed import paddle
from .test_paddle import CORE, DRAWN, GOOD, INPLACE, make_sample, run_quickly, runtime

pytestmark = pytest.mark.paddle

__all__ = ["runtime"]  # the fixture

LOWERED = make_sample(
    "lowered",
    Op(f"{CORE}cast", (Ref(0), Named("dtype", "float16"))),
    Op(f"{CORE}cast", (Ref(3), Named("dtype", "float32"))),
    Op(f"{CORE}exp", (Ref(4),)),
)


@pytest.fixture
def oracle(runtime: Any) -> Iterator[Any]:
    from graphnet_datasets.frameworks.paddle.oracle import float64_outputs

    def compute(sample: Sample, weights: Any) -> Any:
        options: dict[str, Any] = {"device": "cpu", "mode": "replay", "seed": 3}
        made = Workload(runtime, sample, weights=weights, **options)
        made.note_writes()
        return float64_outputs(made, sample)

    yield compute
    assert paddle.get_default_dtype() == "float32"


def wide(sample: Sample) -> dict[str, np.ndarray]:
    return {name: each.numpy().astype(np.float64) for name, each in make_inputs(sample, 3).items()}


@pytest.mark.parametrize("weights", ["parameters", "inputs"])
def test_the_same_values_are_computed_with_more_digits(oracle: Any, weights: str) -> None:
    product = make_sample("product", GOOD.ops[0])
    inputs = wide(product)
    expected = inputs["input_0"] @ inputs["parameter_0"]
    np.testing.assert_allclose(oracle(product, weights).numpy(), expected, rtol=1e-13)


def test_casts_of_the_graph_are_widened(oracle: Any) -> None:
    expected = np.exp(wide(LOWERED)["input_0"])
    np.testing.assert_allclose(oracle(LOWERED, "parameters").numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("weights", ["parameters", "inputs"])
def test_written_tensors_are_part_of_the_outputs(oracle: Any, weights: str) -> None:
    outputs, (buffer,) = oracle(INPLACE, weights)
    inputs = wide(INPLACE)
    np.testing.assert_array_equal(buffer.numpy(), inputs["buffer_0"] + inputs["input_0"])
    np.testing.assert_array_equal(outputs.numpy(), 2 * buffer.numpy())


def test_random_numbers_have_no_oracle(oracle: Any) -> None:
    assert oracle(DRAWN, "parameters") is None


@pytest.mark.slow
def test_a_record_says_how_far_both_arms_are_from_it(tmp_path: Any) -> None:
    (record,) = run_quickly([GOOD], "paddle-to-static", tmp_path)
    (output,) = record["outputs"]
    assert 0 < output["rmse_baseline"] < 1e-5
    assert 0 < output["rmse_candidate"] < 1e-5
    assert not any("oracle" in each for each in record["warnings"])


def test_on_a_gpu_the_wall_clock_waits_for_the_device(runtime: Any) -> None:
    job = WorkerJob(kind="candidate", device="cuda", settings=Settings(), framework="paddle")
    clock = setup.make_clock(job, runtime)
    assert clock.name == "perf_counter_synchronized"
    reading = clock.measure(lambda: 7)
    assert (reading.result, reading.elapsed_ms > 0) == (7, True)
