"""A memory limit holds for operands that are larger than the storage they lie in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphnet_datasets import materialize
from graphnet_datasets.errors import MemoryLimitError
from graphnet_datasets.frameworks.torch.operators import lookup
from graphnet_datasets.frameworks.torch.shapes import measure_footprint
from graphnet_datasets.frameworks.torch.walking.expanded_operands import copied_bytes
from graphnet_datasets.frameworks.torch.walking.forms import Form
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref

WIDE = Input("input", Value("float32", (4096, 4096), (0, 0)))
WIDE_BYTES = 4 * 4096**2


def sample_of(*ops: Op, inputs: tuple[Input, ...] = (WIDE,)) -> Sample:
    return Sample("example/wide", "torch", "other", inputs, ops, Ref(len(inputs) + len(ops) - 1))


@pytest.mark.slow
def test_no_operator_takes_more_than_its_limit() -> None:
    """16 MiB in four bytes, under a limit of 2 MiB: refused, or run within a fifth more."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.safety.expanded_jobs"], cwd=Path(__file__).parents[2],
        capture_output=True, text=True, check=True, env={"OMP_NUM_THREADS": "1", "PATH": ""},
    )  # fmt: skip
    endings = json.loads(done.stdout.splitlines()[-1])
    without_memory = {
        target: ending
        for target, ending in endings.items()
        if "alloc" in ending.lower() or "memory" in ending.lower() or "ended" in ending
    }
    assert without_memory == {}
    refused = {target for target, ending in endings.items() if ending == "refused"}
    assert {"torch.mode", "torch.mm", "torch.cdist", "torch.nn.functional.cross_entropy"} <= refused
    assert len(endings) > 60


def test_the_limit_is_that_of_the_whole_operand() -> None:
    mode = sample_of(Op("torch.mode", (Ref(0), 0)))
    materialize(mode, memory_limit_bytes=2 * WIDE_BYTES)
    with pytest.raises(MemoryLimitError, match="may copy its expanded operands, which brings"):
        materialize(mode, memory_limit_bytes=WIDE_BYTES // 2)  # also of a sample walked before
    footprint = measure_footprint(mode)
    assert footprint.working_bytes > WIDE_BYTES > footprint.peak_bytes


@pytest.mark.parametrize("target", ["torch.relu", "torch.Tensor.t", "torch.sin"])
def test_views_and_pointwise_operators_copy_nothing(target: str) -> None:
    wide = Form((4096, 4096), (0, 0), torch.float32)
    assert copied_bytes(lookup(target), [wide]) == 0
    assert copied_bytes(lookup("torch.mode"), [wide]) == WIDE_BYTES - 4


def test_operands_of_which_only_a_run_tells_the_size_count_when_they_are_there() -> None:
    """The number of copies comes out of a tensor, so that the graph itself has to look."""
    rows = Input("input", Value("float32", (1, 1024)))
    count = Input("input", Value("int64", (1,)))
    ops = (
        Op("torch.Tensor.item", (Ref(1),)),
        Op("torch.Tensor.expand", (Ref(0), Ref(2), 1024)),
        Op("torch.mode", (Ref(3), 0)),
    )
    module = materialize(sample_of(*ops, inputs=(rows, count)), memory_limit_bytes=2**20)
    module(input_0=torch.ones(1, 1024), input_1=torch.tensor([3]))
    with pytest.raises(MemoryLimitError):
        module(input_0=torch.ones(1, 1024), input_1=torch.tensor([100_000]))
