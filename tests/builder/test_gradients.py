"""Gradients of captured graphs, compared with those of the model."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from builder.gradients import check_gradients
from graphnet_datasets import extract
from graphnet_datasets.errors import GradientError


class Net(torch.nn.Module):
    def __init__(self, is_detached: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.is_detached = is_detached

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.first(x).tanh()
        return {"y": self.second(y.detach() if self.is_detached else y) * scale}


def test_gradients_that_differ_from_those_of_the_model_are_an_error() -> None:
    call = [torch.randn(2, 4)], {"scale": torch.randn(4)}
    wrapped = extract(name="test/net")(Net(is_detached=False))
    wrapped(*call[0], **call[1])
    check_gradients(Net(is_detached=False), *call, wrapped.samples)
    with pytest.raises(GradientError, match=r"The gradient of `.*` of `test/net` differs by up to"):
        check_gradients(Net(is_detached=True), *call, wrapped.samples)


def test_a_module_that_detaches_has_those_gradients() -> None:
    call = [torch.randn(2, 4)], {"scale": torch.randn(4)}
    module = Net(is_detached=True)
    wrapped = extract(name="test/net")(module)
    wrapped(*call[0], **call[1])
    check_gradients(module, *call, wrapped.samples)
