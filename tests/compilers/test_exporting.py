"""What an exported program is made to be before a compiler gets it."""

from __future__ import annotations

import operator

import torch

from graphnet_datasets.compilers.exporting import export_flat, spell_out_sums


class Padded(torch.nn.Module):
    """Adds rows of ones to as many rows as the data say."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positive = (x > 0).nonzero()
        return torch.cat([positive, torch.ones(torch.sym_sum((2, positive.size(0))), 1)])


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
