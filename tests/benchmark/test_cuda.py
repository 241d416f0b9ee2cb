"""What only a GPU can show: captured calls, three clocks, the state of the device in a record."""

from __future__ import annotations

import math

import pytest

from graphnet_datasets.benchmark import run
from graphnet_datasets.sample import Op
from graphnet_datasets.sample.arguments import Ref
from tests.benchmark import samples
from tests.benchmark.samples import LINEAR, make_sample, quick

pytestmark = pytest.mark.gpu

SYNCHRONIZING = make_sample(
    "nonzero",
    Op("torch.relu", (Ref(0),)),
    Op("torch.nonzero", (Ref(1),)),
    Op("torch.Tensor.float", (Ref(2),)),
    Op("torch.sum", (Ref(3),)),
    Op("torch.mul", (Ref(0), Ref(4))),
)
"""How many elements there are is asked of the device, which a capture does not allow."""


def test_a_run_has_three_clocks_and_its_kernels() -> None:
    (record,) = run(LINEAR, "eager", "cuda", settings=quick()).to_list()
    assert record["status"] == "ok", record["error_message"]
    assert (record["clock"], record["launch_mode"]) == ("cuda_event", "stream")
    for arm in ("baseline", "candidate"):
        assert record[f"{arm}_num_kernels"] >= 2
        assert 0 < record[f"{arm}_kernel_ms"] < record[f"{arm}_wall_ms"]
        assert isinstance(record[f"is_{arm}_launch_bound"], bool)
        assert record[f"{arm}_peak_memory_bytes"] > 0


@pytest.mark.parametrize(
    "sample", [LINEAR, samples.IN_PLACE, samples.RUNNING_STATISTICS], ids=lambda s: s.id
)
def test_a_captured_call_agrees_with_eager(sample: samples.Sample) -> None:
    (record,) = run(sample, "eager", "cuda", settings=quick(launch_mode="cuda_graph")).to_list()
    assert record["status"] == "ok", record["error_message"]
    assert record["launch_mode"] == "cuda_graph", record["warnings"]
    assert record["min_t"] == -math.inf


def test_uncapturable_calls_are_timed_directly_with_a_warning() -> None:
    settings = quick(launch_mode="cuda_graph")
    (record,) = run(SYNCHRONIZING, "eager", "cuda", settings=settings).to_list()
    assert record["status"] == "ok", record["error_message"]
    assert record["launch_mode"] == "stream"
    assert any(warning.startswith("not_captured: eager") for warning in record["warnings"])


def test_a_captured_call_takes_new_arguments() -> None:
    import torch

    from graphnet_datasets.frameworks.torch.cuda_graphs import CapturedCall

    weight = torch.ones(4, device="cuda")

    def call(x: torch.Tensor, scale: float) -> torch.Tensor:
        return x * weight * scale

    captured = CapturedCall(
        call, lambda: {"x": torch.ones(4, device="cuda"), "scale": 2.0}, torch.device("cuda")
    )
    captured.load({"x": torch.full((4,), 3.0, device="cuda"), "scale": 2.0})
    assert captured().tolist() == [6.0] * 4
    with pytest.raises(RuntimeError, match=r"The argument `scale` is 3\.0, but 2\.0 was captured"):
        captured.load({"scale": 3.0})
