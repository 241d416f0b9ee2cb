"""A memory limit holds for operands that are larger than the storage they lie in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    materialize(mode, memory_limit_bytes=6 * WIDE_BYTES)
    with pytest.raises(MemoryLimitError, match="Copies and buffers of Op 0"):
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


@pytest.mark.parametrize(
    ("target", "args", "least"),
    [
        ("torch.unique", (Ref(0),), 20), ("torch.median", (Ref(0),), 4),
        ("torch.ops.aten.unique_dim.default", (Ref(0), 0), 20),
        ("torch.cdist", (Ref(0), Ref(0)), 8),
        ("torch.linalg.svd", (Ref(0),), 16), ("torch.Tensor.svd", (Ref(0),), 16),
        ("torch.linalg.eigh", (Ref(0),), 8), ("torch.fft.fft", (Ref(0),), 8),
        ("torch.ops.aten._linalg_svd.default", (Ref(0),), 16), ("torch.linalg.inv", (Ref(0),), 4),
        ("torch.Tensor.sort", (Ref(0),), 8), ("torch.kron", (Ref(1), Ref(0)), 4),
    ],
)  # fmt: skip
def test_buffers_of_kernels_count(target: str, args: tuple[Any, ...], least: int) -> None:
    """`least` bytes for each element of a contiguous matrix, beside operands and results."""
    inputs = tuple(Input("input", Value("float32", shape)) for shape in ((512, 512), (1, 1)))
    footprint = measure_footprint(sample_of(Op(target, args), inputs=inputs))
    assert footprint.working_bytes >= footprint.peak_bytes + least * 512**2


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32"])
@pytest.mark.parametrize("target", ["torch.cumsum", "torch.sum", "torch.ops.aten.cumsum.default"])
def test_converted_operands_of_sums_count(target: str, dtype: str) -> None:
    op = Op(target, (Ref(0), 0))
    small = Input("input", Value(dtype, (1024, 64)))
    footprint = measure_footprint(sample_of(op, inputs=(small,)))
    assert footprint.working_bytes >= footprint.peak_bytes + 8 * 1024 * 64


def test_unfolded_and_blocked_operands_of_convolutions_count() -> None:
    for dtype, least in (("float32", 16 * 4 * 64**2), ("float64", 9 * 8 * 62**2)):
        shapes = ((1, 1, 64, 64), (1, 1, 3, 3))
        inputs = tuple(Input("input", Value(dtype, shape)) for shape in shapes)
        op = Op("torch.nn.functional.conv2d", (Ref(0), Ref(1)))
        footprint = measure_footprint(sample_of(op, inputs=inputs))
        assert footprint.working_bytes >= footprint.peak_bytes + least


@pytest.mark.parametrize("target", ["torch.add", "torch.matmul", "torch.nn.functional.linear"])
def test_kernels_without_buffers_keep_their_footprint(target: str) -> None:
    square = Input("input", Value("float32", (256, 256)))
    footprint = measure_footprint(sample_of(Op(target, (Ref(0), Ref(0))), inputs=(square,)))
    assert footprint.working_bytes == footprint.peak_bytes
