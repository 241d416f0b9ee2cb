"""Graphs at sizes at which they take a share of their operations."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets import Sample, extract, make_inputs, materialize
from graphnet_datasets.analysis.costs import measure_costs
from graphnet_datasets.errors import TransformError
from graphnet_datasets.sample import Input, Op, Symbol, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms.symbolic import at_smaller_sizes

pytestmark = pytest.mark.torch


def flops(sample: Sample) -> int:
    costs = measure_costs(sample)
    assert costs is not None
    return costs.flops


def capture(model: torch.nn.Module, data: torch.Tensor) -> Sample:
    captured = extract(name="test/model")(model.eval())
    with torch.no_grad():
        captured(data)
    (sample,) = captured.samples
    return sample


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length = tokens.shape
        positions = torch.arange(length).expand(batch, length)
        return self.layer(self.embedding(tokens) + self.embedding(positions % 50))


@pytest.mark.parametrize(
    ("share", "shape"), [(5 / 8, (5, 64)), (1 / 4, (2, 64)), (1 / 16, (1, 32))]
)
def test_a_batch_gets_smaller_before_a_sequence(share: float, shape: tuple[int, int]) -> None:
    tokens = torch.randint(50, (8, 64))
    sample = capture(Encoder(), tokens)
    small = at_smaller_sizes(sample, share)
    (data,) = (each for each in small.inputs if each.role == "input")
    assert data.value.shape == shape
    assert flops(small) <= flops(sample) * share * 1.2
    assert [each for each in small.inputs if each.role != "input"] == [
        each for each in sample.inputs if each.role != "input"
    ]
    (output,) = materialize(small)(**make_inputs(small))
    assert output.shape == (*shape, 16)


def test_height_and_width_get_smaller_last_and_by_equal_shares() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(2))
    sample = capture(model, torch.zeros(2, 3, 128, 128))
    small = at_smaller_sizes(sample, 1 / 8)
    (data,) = (each for each in small.inputs if each.role == "input")
    assert data.value.shape == (1, 3, 64, 64)
    (data,) = (each for each in at_smaller_sizes(sample, 1e-9).inputs if each.role == "input")
    assert data.value.shape == (1, 3, 32, 32), "a quarter stays"


def test_symbols_that_a_graph_has_are_taken_and_their_constraints_kept() -> None:
    held = Sample(
        "a/held", "torch", "other",
        (Input("input", Value("float32", ("s0", 8))),
         Input("symbol", Value("int64", ()), source_name="s0")),
        (Op("torch.Tensor.view", (Ref(0), Ref(1), 2, 4),
            results=(Value("float32", ("s0", 2, 4)),)),),
        Ref(2), (Symbol("s0", 12, 3, 64),),
    )  # fmt: skip
    assert at_smaller_sizes(held, 1 / 4).inputs[0].value.shape == (3, 8)


def test_a_graph_that_cannot_shrink_is_an_error() -> None:
    fixed = Sample(
        "a/fixed", "torch", "other", (Input("input", Value("float32", (1, 4))),),
        (Op("torch.relu", (Ref(0),)),), Ref(1),
    )  # fmt: skip
    with pytest.raises(TransformError):
        at_smaller_sizes(fixed, 0.5)
