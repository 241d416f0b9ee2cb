"""The public `extract` on paddle layers: memory, directories and tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import extract, read_directory
from graphnet_datasets.errors import CaptureError
from graphnet_datasets.sample import Sample

from .installed import paddle

pytestmark = pytest.mark.paddle


def capture(**options: Any) -> Sample:
    layer = extract(name="test/pool", task="cv", source="made", **options)(
        paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3), paddle.nn.MaxPool2D(2))
    )
    layer.eval()
    layer(paddle.rand([1, 1, 8, 8]))
    return layer.samples[0]


def test_a_layer_is_known_as_paddles() -> None:
    sample = capture()
    assert (sample.id, sample.framework, sample.task) == ("test/pool", "paddle", "cv")
    assert sample.provenance.source == "made"
    assert sample.provenance.model_name == "Sequential"
    assert sample.provenance.framework_version == paddle.__version__


@pytest.mark.parametrize("dynamic", [False, True])
def test_captures_are_written_and_read_back(tmp_path: Path, dynamic: bool) -> None:
    sample = capture(dynamic=dynamic, out=tmp_path / "pool")
    assert read_directory(tmp_path / "pool") == [sample]
    capture(dynamic=dynamic, out=tmp_path / "pool.parquet")
    from graphnet_datasets import load_dataset

    (row,) = load_dataset(str(tmp_path / "pool.parquet"), split="train")
    assert Sample.from_row(row).ops == sample.ops


def test_capturing_leaves_the_wrapped_layer_as_it_was() -> None:
    layer = paddle.nn.Linear(3, 2)
    wrapped = extract(name="test/linear")(layer)
    forward = layer.forward
    state = {name: value.numpy() for name, value in layer.state_dict().items()}
    wrapped(paddle.ones([1, 3]))
    assert layer.forward == forward
    assert paddle.in_dynamic_mode()
    assert list(wrapped.state_dict()) == list(state)
    assert all((layer.state_dict()[name].numpy() == state[name]).all() for name in state)
    assert wrapped.weight is layer.weight


def test_other_objects_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"`extract` accepts a `torch\.nn\.Module`"):
        extract(name="test/function")(len)


def test_capturing_paddle_needs_no_torch() -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); sys.modules['torch'] = None\n"
        "import paddle\n"
        "from graphnet_datasets import extract\n"
        "layer = extract(name='a')(paddle.nn.ReLU()); layer(paddle.ones([2]))\n"
        "assert layer.samples[0].num_ops == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
