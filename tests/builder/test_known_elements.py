"""Sizes that follow from the elements of inputs are constants of a capture."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from builder.known_elements import elements_known

pytestmark = pytest.mark.torch


def test_elements_are_known_after_operators_and_in_factories() -> None:
    grid = torch.tensor([[1, 4, 6]])
    with elements_known([grid]), FakeTensorMode(allow_non_fake_inputs=True):
        counts = grid.prod(-1) // 4
        indices = torch.arange(10)
        assert counts.tolist() == [6]
        assert indices[indices > 6].tolist() == [7, 8, 9]


def test_weights_and_random_numbers_stay_unknown() -> None:
    unknown = pytest.raises(DataDependentOutputException)
    with elements_known([]), FakeTensorMode(allow_non_fake_inputs=True), unknown:
        torch.rand(2).sum().item()


def test_a_trace_has_constant_sizes() -> None:
    shapes: list[Any] = []

    def crop(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        _, height, width = grid[0].tolist()
        return x[: height * width] + 1

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        *_, add, _ = graph.graph.nodes
        shapes.append(tuple(add.meta["example_value"].shape))
        return graph

    grid = torch.tensor([[1, 4, 6]])
    with torch._dynamo.config.patch(capture_scalar_outputs=True), elements_known([grid]):
        torch.compile(crop, backend=backend)(torch.ones(30, 2), grid)
    torch._dynamo.reset()
    assert shapes == [(24, 2)]


def test_the_original_functions_are_restored() -> None:
    dispatch = FakeTensorMode.dispatch
    with pytest.raises(ZeroDivisionError), elements_known([]):
        assert FakeTensorMode.dispatch is not dispatch
        raise ZeroDivisionError
    assert FakeTensorMode.dispatch is dispatch
