"""Cheats that need a GPU: work on a side stream, and clocks of the device that lie."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from tests.adversarial.conftest import SETTINGS, Trial, make_trial

pytestmark = pytest.mark.gpu

MODULE = "tests.adversarial.cheats"
BALLAST_MS = 0.5
"""Twenty products of 4096 x 4096 matrices take 2.7 TFLOP, several milliseconds on any GPU."""


@pytest.fixture(scope="module")
def cuda_trial() -> Iterator[Trial]:
    runner = SampleRunner("cuda", dataclasses.replace(SETTINGS, memory_limit_bytes=8 * 2**30))
    yield make_trial(runner)
    runner.close()


def test_an_honest_candidate_is_accused_of_nothing_on_a_gpu(cuda_trial: Trial) -> None:
    record = cuda_trial("eager")
    assert (record["status"], record["clock"]) == ("ok", "cuda_event")
    assert record["min_t"] < -6


@pytest.mark.parametrize("cheat", ["returns_before_a_side_stream_ends", "patches_cuda_clocks"])
def test_hidden_work_is_timed_or_its_outputs_are_wrong(cuda_trial: Trial, cheat: str) -> None:
    record = cuda_trial(cheat, module=MODULE)
    assert record["status"] == "ok", record["error_message"]
    assert min(record["candidate_latency_ms"]) > BALLAST_MS or record["min_t"] > -3
