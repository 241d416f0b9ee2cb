"""Models with branches and loops keep them in their graphs, and compute the right values."""

from __future__ import annotations

import pytest
import torch

from builder.architectures.control_flow import (
    EarlyExit,
    Equilibrium,
    HiddenMarkovModel,
    ScannedRecurrence,
)
from graphnet_datasets import extract

HIGHER_ORDER = "torch.ops.higher_order."


@pytest.mark.parametrize(
    ("model", "inputs", "target"),
    [
        (ScannedRecurrence(20, 4), torch.arange(10).view(2, 5), "scan"),
        (Equilibrium(4), torch.ones(2, 4), "while_loop"),
        (EarlyExit(2, 2, 3), torch.ones(1, 3, 8, 8), "cond"),
    ],
)
def test_graphs_contain_the_branch_or_loop(
    model: torch.nn.Module, inputs: torch.Tensor, target: str
) -> None:
    wrapped = extract(name="test/model")(model.eval())
    with torch.no_grad():
        wrapped(inputs)  # compares the graph with the model
    (sample,) = wrapped.samples
    assert [op.target for op in sample.ops if HIGHER_ORDER in op.target] == [HIGHER_ORDER + target]


def test_the_forward_algorithm_sums_over_all_paths() -> None:
    torch.manual_seed(0)
    model, symbols = HiddenMarkovModel(2, 3), torch.tensor([[2, 0, 1]])
    start, moves = model.start.softmax(-1), model.transitions.softmax(-1)
    seen = model.emissions.softmax(-1)[:, symbols[0]]
    total = sum(
        start[a] * seen[a, 0] * moves[a, b] * seen[b, 1] * moves[b, c] * seen[c, 2]
        for a in range(2)
        for b in range(2)
        for c in range(2)
    )
    with torch.no_grad():
        torch.testing.assert_close(model(symbols).exp(), torch.as_tensor(total)[None])
