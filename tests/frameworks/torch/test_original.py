"""Materialized samples give bit for bit what the original texts give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from graphnet_datasets.directory import read_directory
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.sample import Sample
from tests.frameworks.torch.original import Originals, bits, flatten

LIMIT_BYTES = 2**30
NUM_PARTS = 8
SMALL = [
    "torchgeometric/GIN",
    "torchgeometric/PNA",
    "torchgeometric/RECT_L",
    "others/pigu_hybrid",
    "timm/convnextv2_femto.fcmae",
    "timm/skresnet18.ra_in1k",
    "torchvision/mobilenet_v3_large",
    "ultralytics/yolov8n-pose",
    "transformers-auto-model/google_t5-efficient-tiny",
    "transformers-auto-model/prajjwal1_bert-tiny",
    "transformers-auto-model/hf-tiny-model-private_tiny-random-BigBirdForSequenceClassification",
    "transformers-auto-model/hf-tiny-model-private_tiny-random-AltCLIPModel",
]
"""A few of each source: graphs, in-place operators, symbols, subscript assignments, constants."""

pytestmark = [
    # Two of the graphs call it, and torch says that it will go.
    pytest.mark.filterwarnings("ignore:_check_is_size will be removed:FutureWarning"),
]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with Originals(tmp_path_factory.mktemp("originals")) as running:
        yield running
    torch.set_num_threads(threads)


def check(sample: Sample, folder: Path, originals: Originals, seed: int = 5) -> None:
    inputs = make_inputs(sample, seed=seed)
    named = dict(zip((each.source_name for each in sample.inputs), inputs.values(), strict=True))
    expected = originals.run(folder / "model.py", named, seed)
    module = materialize(sample)
    torch.manual_seed(seed)
    with torch.no_grad():
        outputs = flatten(module(**inputs))
    assert len(outputs) == len(expected)
    for position, (output, original) in enumerate(zip(outputs, expected, strict=True)):
        assert bits(output) == bits(original), f"output {position} of {sample.id}"


@pytest.mark.parametrize("name", SMALL)
def test_small_samples_equal_their_originals(
    upstream_samples: Path, originals: Originals, name: str
) -> None:
    folder = upstream_samples / "samples" / name
    [sample] = read_directory(folder)
    check(sample, folder, originals)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_all_samples_below_a_gigabyte_equal_their_originals(
    upstream_samples: Path, originals: Originals, part: int
) -> None:
    folders = sorted(path.parent for path in (upstream_samples / "samples").rglob("model.py"))
    for folder in folders[part::NUM_PARTS]:
        [sample] = read_directory(folder)
        if sample.input_bytes >= LIMIT_BYTES:
            continue
        check(sample, folder, originals)
