"""Kernels of a GPU and operators of a CPU, by torch's profiler."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets.frameworks.torch.profiling import profile_call


def test_operators_count_once_with_all_that_they_call() -> None:
    layer = torch.nn.Linear(8, 8)  # `linear` calls `addmm`, `t`, `transpose`, …
    x = torch.ones(2, 8)
    prepared: list[int] = []
    kernel_ms, num_kernels = profile_call(
        lambda: torch.relu(layer(x)), lambda: prepared.append(1), "cpu", num_calls=2
    )
    assert num_kernels == 2
    assert kernel_ms > 0
    assert len(prepared) == 2


def test_regions_that_somebody_named_are_no_operators() -> None:
    x = torch.ones(2, 8)

    def call() -> None:
        with torch.profiler.record_function("a region"):
            torch.relu(x)

    assert profile_call(call, lambda: None, "cpu")[1] == 1


def test_they_are_those_that_torch_itself_tells() -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    x = torch.ones(2, 5, 16)
    with torch.profiler.profile() as profiler:
        layer(x)
    events = [each for each in profiler.events() or [] if "::" in each.name]
    outermost = [each for each in events if each.cpu_parent is None]
    assert profile_call(lambda: layer(x), lambda: None, "cpu")[1] == len(outermost) > 10


@pytest.mark.gpu
def test_a_gpu_has_kernels_and_the_sum_of_their_times_is_less_than_the_wall_time() -> None:
    from graphnet_datasets.timing.clocks import WallClock

    left = torch.randn(2048, 2048, device="cuda")

    def call() -> None:
        torch.relu(left @ left)

    clock = WallClock(torch.cuda.synchronize)
    clock.measure(call)
    wall_ms = max(clock.measure(call).wall_ms for _ in range(5))
    kernel_ms, num_kernels = profile_call(call, lambda: None, "cuda")
    assert num_kernels >= 2
    assert 0 < kernel_ms < 1.5 * wall_ms
