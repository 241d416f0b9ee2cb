"""Capture through `torch.export`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.torch.capture.export import extract_export
from graphnet_datasets.frameworks.torch.capture.initialisers import without_weights
from graphnet_datasets.sample import Value
from graphnet_datasets.sample.arguments import Ref

from .capturing import inputs_by_role, run_captured, targets


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("order", torch.arange(4).flip(0), persistent=False)
        self.table = torch.ones(4) * 2

    def forward(self, x: torch.Tensor, factor: float = 0.5, nothing: None = None) -> dict[str, Any]:
        with torch.no_grad():
            x = x + torch.tensor([1.0, 2.0, 3.0, 4.0])
        with torch.autocast("cpu", enabled=False):
            y = self.linear(x)
        return {"y": y[:, self.order] * factor + self.table, "none": nothing, "rows": x.shape[0]}


def test_a_module_is_exported_in_aten_operators() -> None:
    module, x = Model().eval(), torch.randn(3, 4)
    sample = extract_export(module, (x,), name="test/export", task="scientific")
    assert {"torch.ops.aten.linear.default", "torch.ops.aten.add.Tensor"} <= set(targets(sample))
    assert [each.role for each in sample.inputs] == [
        "parameter", "parameter", "buffer", "constant", "constant", "input",
    ]  # fmt: skip
    assert inputs_by_role(sample, "buffer")[0].data is not None
    assert all(each.data is not None for each in inputs_by_role(sample, "constant"))
    assert isinstance(sample.outputs, tuple) and sample.outputs[1:] == (None, 3)
    assert (sample.provenance.capture, sample.provenance.mode) == ("export", "eval")
    assert sample.task == "scientific"
    linear = next(op for op in sample.ops if op.target == "torch.ops.aten.linear.default")
    assert linear.module == "linear"
    output = run_captured(sample, module, [x])
    assert torch.equal(output[0], module(x)["y"])


def test_regions_of_autocast_and_gradient_mode_stand_around_their_operators() -> None:
    sample = extract_export(Model(), (torch.randn(3, 4),), name="test/export")
    names = [name.rpartition(".")[2] for name in targets(sample)]
    assert names.count("_enter_autocast") == names.count("_exit_autocast") == 1
    start = names.index("_enter_autocast")
    assert start < targets(sample).index("torch.ops.aten.linear.default")
    leave = sample.ops[names.index("_exit_autocast")]
    assert leave.args == (Ref(len(sample.inputs) + start),)


def test_dynamic_dimensions_become_symbols() -> None:
    rows = torch.export.Dim("rows", max=64)
    module, x = Model().eval(), torch.randn(6, 4)
    sample = extract_export(module, (x,), name="test/export", dynamic_shapes={"x": {0: rows}})
    (symbol,) = sample.symbols
    assert (symbol.name, symbol.hint, symbol.upper) == ("s0", 6, 64)
    assert inputs_by_role(sample, "input")[0].value == Value("float32", ("s0", 4))
    output = run_captured(sample, module, [torch.ones(9, 4)], {"s0": 9})
    assert torch.equal(output[0], module(torch.ones(9, 4))["y"]) and output[2] == 9


def test_a_module_without_weights_is_exported() -> None:
    with without_weights():
        module = Model().eval()
    light = extract_export(module, (torch.ones(3, 4),), name="test/export")
    real = extract_export(Model().eval(), (torch.ones(3, 4),), name="test/export")
    assert targets(light) == targets(real)
    assert [each.value for each in light.inputs] == [each.value for each in real.inputs]
    assert [each.data for each in light.inputs] == [each.data for each in real.inputs]


def test_unexportable_modules_get_advice() -> None:
    class Branching(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(CaptureError) as caught:
        extract_export(Branching(), (torch.ones(3),), name="test/branching")
    assert str(caught.value).startswith("`test/branching` cannot be exported: ")
    assert str(caught.value).endswith(
        "Try `extract`, which can split a module into several graphs."
    )
