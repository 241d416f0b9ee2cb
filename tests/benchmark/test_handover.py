"""The parent reads what a process with a candidate in it has written, and believes none of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphnet_datasets.benchmark.handover import (
    HandoverError,
    read_outputs,
)
from graphnet_datasets.frameworks.torch.runtime import OutputTypeError, TorchRuntime
from graphnet_datasets.sample.vocabulary import ITEM_SIZE_BYTES

DTYPES = sorted(
    name
    for name in ITEM_SIZE_BYTES
    if not name.startswith(("q", "complex32")) and hasattr(torch, name)
)


@pytest.fixture(scope="module")
def runtime() -> Iterator[TorchRuntime]:
    with torch.no_grad():  # the runtime switches gradients off for its whole process
        yield TorchRuntime("cpu", torch.get_num_threads())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_bit_by_bit(runtime: TorchRuntime, tmp_path: Path, dtype: str) -> None:
    size = 2 * 3 * ITEM_SIZE_BYTES[dtype]
    data = torch.arange(size, dtype=torch.uint8)
    if dtype == "bool":
        data %= 2
    tensor = data.view(getattr(torch, dtype)).reshape(2, 3)
    described = runtime.write_outputs((tensor, [tensor.t()]), tmp_path / "out")
    first, second = read_outputs(tmp_path / "out", described)
    assert (first.dtype, first.elements.shape) == (dtype, (2, 3))
    assert first.elements.tobytes() == bytes(data.tolist())
    assert second.elements.T.tobytes() == first.elements.tobytes()


def test_numbers_and_empty_tensors_are_outputs_and_none_is_not(
    runtime: TorchRuntime, tmp_path: Path
) -> None:
    outputs = {"a": 3, "b": (2.5, True, None), "c": torch.zeros(0, 4)}
    found = read_outputs(tmp_path / "out", runtime.write_outputs(outputs, tmp_path / "out"))
    assert [(each.dtype, each.elements.shape) for each in found] == [
        ("int64", ()),
        ("float64", ()),
        ("bool", ()),
        ("float32", (0, 4)),
    ]


@pytest.mark.parametrize(
    "output", ["text", torch.zeros(2).to_sparse(), torch.zeros(2, device="meta")]
)
def test_outputs_of_unsupported_types_are_refused(
    runtime: TorchRuntime, tmp_path: Path, output: Any
) -> None:
    with pytest.raises(OutputTypeError, match=r"^Output 0 is a "):
        runtime.write_outputs(output, tmp_path / "out")


GOOD = {"dtype": "float32", "shape": [2], "offset": 0}


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (None, "The worker did not describe its outputs."),
        ([GOOD] * 10_001, "The worker did not describe its outputs."),
        ([3], "The worker did not describe its outputs."),
        (
            [{**GOOD, "dtype": "object"}],
            "An output has the dtype 'object', which a sample cannot represent.",
        ),
        (
            [{**GOOD, "shape": [-1]}],
            "An output has a shape or a position that does not consist of integers.",
        ),
        (
            [{**GOOD, "offset": 2.0}],
            "An output has a shape or a position that does not consist of integers.",
        ),
        (
            [{**GOOD, "shape": [2**40]}],
            "The file of outputs ends before an output of shape (1099511627776,).",
        ),
        ([{**GOOD, "offset": 1}], "The file of outputs ends before an output of shape (2,)."),
    ],
)
def test_a_description_that_does_not_fit_the_file_is_refused(
    tmp_path: Path, described: Any, message: str
) -> None:
    (tmp_path / "out").write_bytes(bytes(8))
    with pytest.raises(HandoverError) as caught:
        read_outputs(tmp_path / "out", described)
    assert str(caught.value) == message


def test_a_link_and_a_pipe_in_place_of_the_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing"):
        with pytest.raises(HandoverError, match="The file of outputs "):
            read_outputs(tmp_path / name, [GOOD])


def test_the_elements_outlive_the_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(np.ones(2, np.float32).tobytes())
    (output,) = read_outputs(tmp_path / "out", [GOOD])
    (tmp_path / "out").unlink()
    assert output.elements.tolist() == [1, 1]
