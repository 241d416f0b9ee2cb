"""Graphs of training: gradients of losses, and steps of optimizers."""

from __future__ import annotations

import json

import pytest
import torch

from builder.catalog import parse_line
from builder.worker import capture_entry
from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.sample import Sample


def captured(options: str) -> Sample:
    line = (
        f"torch/mlp-train | other | torch | mlp | sizes=[4,8,2] {options} "
        "| input=normal(3,4) target=normal(3,2) | float32 | train | | "
    )
    (sample,) = capture_entry(parse_line(line))
    return sample


def test_a_loss_is_part_of_the_graph() -> None:
    sample = captured('loss="mse_loss"')
    assert sample.ops[-1].target == "torch.nn.functional.mse_loss"
    assert sample.kind == "graph"


@pytest.mark.parametrize("kind", ["joint", "forward", "backward"])
def test_gradient_graphs_have_the_name_of_their_entry(kind: str) -> None:
    sample = captured(f'loss="mse_loss" gradients="{kind}"')
    assert (sample.id, sample.kind) == ("torch/mlp-train", kind)
    assert sample.provenance.parent_id == ""


@pytest.mark.parametrize(
    ("name", "optimizer"), [("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW)]
)
def test_a_step_updates_the_weights_as_the_optimizer_does(
    name: str, optimizer: type[torch.optim.Optimizer]
) -> None:
    plain = captured('loss="mse_loss"')
    step = captured(f'loss="mse_loss" optimizer="{name}"')
    assert json.loads(step.provenance.metadata)["outputs"] == ["output 0"]
    inputs = make_inputs(step, 0)
    by_source = {
        item.source_name: inputs[key]
        for key, item in zip(step.input_names, step.inputs, strict=True)
    }
    arguments = {
        key: by_source[item.source_name].clone()
        for key, item in zip(plain.input_names, plain.inputs, strict=True)
    }
    sources = {
        item.source_name: key for key, item in zip(plain.input_names, plain.inputs, strict=True)
    }
    weights = {
        source: arguments[key].requires_grad_()
        for source, key in sources.items()
        if "parameters" in source
    }
    options = {"sgd": {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}, "adamw": {"lr": 1e-3}}
    reference = optimizer(list(weights.values()), **options[name])
    (loss,) = materialize(plain)(**arguments)
    loss.backward()
    names = {"sgd": {"momentum": "momentum_buffer"}, "adamw": {}}[name]
    for source, weight in weights.items():
        for key in ("momentum",) if name == "sgd" else ("exp_avg", "exp_avg_sq", "step"):
            state = by_source[f"{key}_{source}"].clone()
            reference.state[weight][names.get(key, key)] = state
    reference.step()
    materialize(step)(**inputs)
    for source, weight in weights.items():
        torch.testing.assert_close(by_source[source], weight.detach())
