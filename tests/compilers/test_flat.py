"""Flat modules: tensors by position in, a tuple out, and the structure restored."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers.exporting import export_flat  # noqa: E402
from graphnet_datasets.compilers.flat import FlatModule  # noqa: E402
from graphnet_datasets.errors import CompilerError  # noqa: E402


class Nested(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: float, y: torch.Tensor) -> dict[str, Any]:
        return {"sum": x + y, "rest": [None, (x * scale,), 7]}


@pytest.fixture
def inputs() -> dict[str, Any]:
    return {"x": torch.ones(2), "scale": 3.0, "y": torch.zeros(2)}


def test_structure_is_restored(inputs: dict[str, Any]) -> None:
    flat = FlatModule(Nested(), inputs)
    assert flat.tensor_names == ("x", "y")
    results = flat(*flat.arguments(inputs))
    assert len(results) == flat.num_tensors == 2
    rebuilt = flat.rebuild(results)
    assert torch.equal(rebuilt["sum"], torch.ones(2))
    assert rebuilt["rest"][0] is None
    assert torch.equal(rebuilt["rest"][1][0], 3 * torch.ones(2))
    assert rebuilt["rest"][2] == 7


def test_a_fixed_input_cannot_change(inputs: dict[str, Any]) -> None:
    flat = FlatModule(Nested(), inputs)
    with pytest.raises(ValueError) as error:
        flat.arguments({**inputs, "scale": 4.0})
    assert str(error.value) == (
        "The input `scale` was fixed at 3.0 when the module was compiled; it cannot be 4.0 now."
    )


@pytest.mark.parametrize("name", ["x", "weight"])
def test_exporting_refuses_writes_to_arguments(name: str) -> None:
    class Writes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            {"x": x, "weight": self.weight}[name].add_(1)
            return x * 2

    with torch.no_grad(), pytest.raises(CompilerError) as error:
        export_flat("tool", Writes(), {"x": torch.ones(2)}, dynamic=False)
    written = {"x": "x", "weight": "module.weight"}[name]
    assert str(error.value) == (
        f"The graph writes to its input or buffer `{written}`, which `tool` does not support. "
        "Choose another compiler for this graph."
    )


def test_internal_in_place_writes_are_allowed(inputs: dict[str, Any]) -> None:
    class WritesInside(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).mul_(2)

    with torch.no_grad():
        flat, _ = export_flat("tool", WritesInside(), {"x": inputs["x"]}, dynamic=False)
    assert flat.written == []
