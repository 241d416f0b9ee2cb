"""Layers that a model drops by chance in train mode are all in its graph."""

from __future__ import annotations

import pytest
import torch

from builder.architectures import ARCHITECTURES
from builder.catalog import parse_line
from builder.worker import capture_entry

LINE = "torch/drops | other | torch | drops | | x=normal(2,4) | float32 | train | |"


class Drops(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            if self.training and torch.rand([]) < 0.5:
                continue
            x = layer(x)
        return x + torch.rand(2, 4)  # noise is drawn as ever


def test_all_layers_are_in_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ARCHITECTURES, "drops", Drops)
    original = torch.rand
    (sample,) = capture_entry(parse_line(LINE))
    targets = [op.target for op in sample.ops]
    assert sum("linear" in target for target in targets) == 3
    assert sum("rand" in target for target in targets) == 1
    assert torch.rand is original
