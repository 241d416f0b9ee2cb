"""Capture of a module as a functional aten graph with its weights as arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...compilers.exporting import export_flat, quiet_copies
from ...compilers.flat import FlatModule
from .decompositions import decompositions

_RESHAPES = {torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default}
"""These fail for strides other than those of eager's result; `reshape` copies instead."""

_WRITES = {
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
}
"""Results of these kinds precede all other results."""


@dataclasses.dataclass(frozen=True, slots=True)
class CapturedGraph:
    """An aten graph and the values bound to its placeholders.

    Attributes:
        flat: flattens inputs and restores the structure of outputs.
        module: the graph; its placeholders are weights and inputs.
        bound: for each placeholder, its tensor or the position of an input.
        written: placeholders whose tensors are overwritten with the first results after the call.
    """

    flat: FlatModule
    module: torch.fx.GraphModule
    bound: tuple[torch.Tensor | int | None, ...]
    written: tuple[int, ...] = ()

    def arguments(self, tensors: tuple[torch.Tensor, ...]) -> list[Any]:
        """Return the arguments of the graph for the input tensors of a call."""
        return [tensors[binding] if isinstance(binding, int) else binding for binding in self.bound]

    def outputs(self, results: Sequence[Any], arguments: Sequence[Any]) -> Sequence[Any]:
        """Apply the writes of the graph to inputs and buffers, and return the other results."""
        for place, result in zip(self.written, results, strict=False):
            arguments[place].copy_(result)
        return results[len(self.written) :]


def capture_graph(
    compiler: str, module: Callable[..., Any], example_inputs: Mapping[str, Any]
) -> CapturedGraph:
    """Export a module and decompose it to core aten operators, with attention as products."""
    with sdpa_kernel(SDPBackend.MATH), quiet_copies():
        flat, program = export_flat(compiler, module, example_inputs, dynamic=False, writes=True)
        program = program.run_decompositions(decompositions())
    bound: list[torch.Tensor | int | None] = []
    position = 0
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            bound.append(position)
            position += 1
        elif spec.target in program.state_dict:
            bound.append(program.state_dict[spec.target])
        else:
            bound.append(program.constants.get(str(spec.target)))  # type: ignore[arg-type]
    captured = program.graph_module
    for node in captured.graph.nodes:
        if node.target in _RESHAPES:
            node.target = torch.ops.aten.reshape.default
    captured.recompile()
    return CapturedGraph(flat, captured, tuple(bound), _written(program))


def _written(program: torch.export.ExportedProgram) -> tuple[int, ...]:
    """Return the placeholders that the first results of the program are written to."""
    signature = program.graph_signature
    places: dict[tuple[bool, str], int] = {}
    for place, spec in enumerate(signature.input_specs):
        is_input = spec.kind == InputKind.USER_INPUT
        places[is_input, str(spec.arg.name if is_input else spec.target)] = place
    return tuple(
        places[spec.kind == OutputKind.USER_INPUT_MUTATION, str(spec.target)]
        for spec in signature.output_specs
        if spec.kind in _WRITES
    )
