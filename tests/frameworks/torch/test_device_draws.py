"""Normals drawn in a device's memory: the bits of those drawn in the host's."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets.errors import TimeLimitError
from graphnet_datasets.frameworks.deadline import Deadline, drawing_until
from graphnet_datasets.frameworks.torch import device_draws, tensors
from graphnet_datasets.frameworks.torch.tensors import make_input
from graphnet_datasets.inputs import find_normals
from graphnet_datasets.sample import Input, Sample, Statistics, Value

from .building import build

STATISTICS = (
    None,
    Statistics(0.0, 1.0),
    Statistics(0.1, 0.02, 0.05, 0.2),
    Statistics(-0.2, 0.5, -1.0, 1.2),
    Statistics(0.0, 1.0, 0.0, 6.0),
    Statistics(0.0, 3e4),
    Statistics(0.0, 1e-39),
    Statistics(0.0, 1e38),
)
LAYOUTS = (
    ((1024, 700), None),
    ((1024, 700), (1, 1024)),
    ((1024, 700), (800, 1)),
    ((4, 1024, 300), (0, 300, 1)),
    ((300, 4, 1024), (1024, 0, 1)),
    ((4, 2**21 + 5), None),
)


def one(value: Value, statistics: Statistics | None, role: str = "parameter") -> Sample:
    each = Input(role, value, statistics=statistics)  # type: ignore[arg-type]
    return build(inputs=(each,), outputs=None)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().cpu().view({2: torch.int16, 4: torch.int32}[tensor.itemsize])


def drawn_on(monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    monkeypatch.setattr(tensors, "draws_on", lambda _: is_there)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_device_draws_the_bits_that_the_host_draws(
    dtype: str, layout: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statistics in STATISTICS:
        sample = one(Value(dtype, *layout), statistics)
        assert find_normals(sample, 0, 3) is not None
        drawn_on(monkeypatch, False)
        expected = make_input(sample, 0, 3)
        drawn_on(monkeypatch, True)
        found = make_input(sample, 0, 3)
        assert isinstance(found, torch.Tensor)
        assert isinstance(expected, torch.Tensor)
        assert (found.shape, found.stride()) == (expected.shape, expected.stride())
        assert torch.equal(bits(found), bits(expected)), statistics


@pytest.mark.parametrize("mode", ["replay", "fresh", "probe"])
def test_each_mode_has_its_own_draws(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = one(Value("float32", (2**10, 2**9)), Statistics(1.0, 0.0, 1.0, 1.0), "input")
    drawn_on(monkeypatch, False)
    expected = make_input(sample, 0, 1, mode)  # type: ignore[arg-type]
    drawn_on(monkeypatch, True)
    assert torch.equal(make_input(sample, 0, 1, mode), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "statistics"),
    [
        (Value("float32", (100, 100)), Statistics(0.0, 1.0)),
        (Value("float64", (2**10, 2**9)), Statistics(0.0, 1.0)),
        (Value("int64", (2**10, 2**9)), Statistics(0.0, 1.0)),
        (Value("complex64", (2**10, 2**9)), Statistics(0.0, 1.0)),
        (Value("float32", (2**10, 2**9)), Statistics(1.0, 0.6, 0.0)),
        (Value("float32", (2**10, 2**9)), Statistics(1.0, 0.0)),
    ],
    ids=str,
)
def test_small_and_special_draws_stay_on_the_host(value: Value, statistics: Statistics) -> None:
    assert find_normals(one(value, statistics), 0) is None


def test_a_draw_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_draws, "_PIECE", 1)
    found = find_normals(one(Value("float32", (2**10, 2**9)), None), 0)
    assert found is not None
    with pytest.raises(TimeLimitError), drawing_until(Deadline(1e-9), "Making `weight`"):
        device_draws.draw_normals(found[0], torch.float32, torch.device("cpu"))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_gpu_draws_the_bits_that_the_host_draws(dtype: str, layout: tuple) -> None:
    assert device_draws.draws_on(torch.device("cuda"))
    for statistics in STATISTICS:
        sample = one(Value(dtype, *layout), statistics)
        found, expected = make_input(sample, 0, 3, device="cuda"), make_input(sample, 0, 3)
        assert isinstance(found, torch.Tensor)
        assert isinstance(expected, torch.Tensor)
        assert found.is_cuda
        assert found.stride() == expected.stride()
        assert torch.equal(found.cpu(), expected), statistics
