"""Branches on drawn and computed numbers are decided, and leave one whole graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from builder.architectures import ARCHITECTURES
from builder.branches import layers_kept, numbers_of_python, taken_for_finite
from builder.catalog import parse_line
from builder.worker import capture_entry
from graphnet_datasets.frameworks.torch.operators.resolve import name_of

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


class Clamps(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        if not torch.isfinite(x).all():
            x = torch.clamp(x, min=-1.0, max=1.0)
        return x.cos()


def test_overflow_clamps_are_captured_as_finite() -> None:
    found = []

    def backend(graph: torch.fx.GraphModule, _: object) -> object:
        found.append([node.name for node in graph.graph.nodes if node.op.startswith("call")])
        return graph.forward

    original = torch.isfinite
    torch.compiler.reset()
    with taken_for_finite():
        torch.compile(Clamps(), backend=backend)(torch.ones(2))
    torch.compiler.reset()
    assert found == [["x", "cos"]]
    assert torch.isfinite is original
    with pytest.raises(ValueError, match="no"), taken_for_finite():
        raise ValueError("no")
    assert torch.isfinite is original


class Scales(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if np.lcm(4, 6) != 12 or np.random.rand() < 0.5:
            return x
        return (x * np.sqrt(x.shape[-1])).data


def test_numpy_numbers_are_numbers_in_the_graph() -> None:
    names = []

    def backend(graph: torch.fx.GraphModule, _: object) -> object:
        calls = [node for node in graph.graph.nodes if node.op.startswith("call")]
        names.extend(name_of(node.target) for node in calls)
        return graph.forward

    torch.compiler.reset()
    with numbers_of_python(), layers_kept():
        given = torch.compile(Scales(), backend=backend)(torch.ones(2, 9))
    torch.compiler.reset()
    assert names == ["operator.mul", "torch.Tensor.detach"]
    assert given.tolist() == [[3.0] * 9] * 2
    assert np.sqrt(4) == 2 and isinstance(np.sqrt, np.ufunc)
