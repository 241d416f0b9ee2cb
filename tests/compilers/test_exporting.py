"""What an exported program is made to be before a compiler gets it."""

from __future__ import annotations

import operator

import pytest
import torch

from graphnet_datasets.compilers.exporting import export_flat, spell_out_sums
from graphnet_datasets.errors import CompilerError


class Padded(torch.nn.Module):
    """Adds rows of ones to as many rows as the data say."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positive = (x > 0).nonzero()
        return torch.cat([positive, torch.ones(torch.sym_sum((2, positive.size(0))), 1)])


class Counted(torch.nn.Module):
    """Returns a number beside a tensor: how many are positive, or how many there are."""

    def __init__(self, of_data: bool) -> None:
        super().__init__()
        self.of_data = of_data

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x + 1, (x > 0).nonzero().size(0) if self.of_data else x.size(0)


def targets(program: torch.export.ExportedProgram) -> list[object]:
    return [node.target for node in program.graph.nodes if node.op == "call_function"]


def test_sums_of_sizes_are_additions() -> None:
    inputs = {"x": torch.tensor([1.0, -2.0, 3.0, 0.0])}
    raw = torch.export.export(Padded(), (inputs["x"],), strict=False)
    assert torch.sym_sum in targets(raw)
    _, program = export_flat("x", Padded(), inputs, dynamic=False)
    assert torch.sym_sum not in targets(program)
    assert operator.add in targets(program)
    program.graph.lint()
    for x in (inputs["x"], torch.tensor([-1.0, -1.0, 0.0, 5.0])):
        (found,) = program.module()(x)
        assert torch.equal(found, Padded()(x))


@pytest.mark.parametrize(("of_data", "dynamic"), [(True, False), (False, True)])
def test_a_number_that_a_call_decides_is_refused(of_data: bool, dynamic: bool) -> None:
    inputs = {"x": torch.tensor([1.0, -2.0, 3.0])}
    with pytest.raises(
        CompilerError, match=r"returns the number `[us]\w*`.*`x` return only tensors"
    ):
        export_flat("x", Counted(of_data), inputs, dynamic=dynamic)


def test_a_number_that_is_known_before_is_kept() -> None:
    inputs = {"x": torch.tensor([1.0, -2.0, 3.0])}
    flat, program = export_flat("x", Counted(of_data=False), inputs, dynamic=False)
    tensor, number = flat.rebuild(program.module()(inputs["x"]))
    assert torch.equal(tensor, inputs["x"] + 1)
    assert number == 3


def test_sums_keep_their_value_and_those_that_are_outputs_stay() -> None:
    graph = torch.fx.Graph()
    sizes = [graph.placeholder(name) for name in "ab"]
    for value, size in enumerate(sizes, 5):
        size.meta["val"] = value
    total = graph.call_function(torch.sym_sum, ([2, 3, *sizes],))
    last = graph.call_function(torch.sym_sum, ([*sizes, 1],))
    graph.output((graph.call_function(operator.mul, (total, 2)), last))
    module = torch.fx.GraphModule({}, graph)
    before = module(5, 6)
    spell_out_sums(module)
    kept = [node for node in module.graph.nodes if node.target is torch.sym_sum]
    assert [node.name for node in kept] == [last.name]
    assert module(5, 6) == before == (32, 12)
    added = [node for node in module.graph.nodes if node.target is operator.add]
    assert [node.meta["val"] for node in added] == [10, 16]
