"""Replacement of the groups of a captured graph by kernels, each checked against eager."""

from __future__ import annotations

import dataclasses
import logging
import operator
from collections.abc import Sequence
from typing import Any

import torch

from ...errors import TensorComprehensionError
from .capturing import CapturedGraph
from .grouping import group_nodes, is_contraction, is_counted, reason_against
from .kernels import GroupKernel, KernelCache
from .lowering import LoweredGroup, lower_group
from .registry import UnsupportedError

_logger = logging.getLogger(__name__)
_Node = torch.fx.Node

_TOLERANCES = {torch.float64: 1e-9, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Relative tolerances by dtype, 2e-5 for float32; 16-bit types allow two units in the last
place.
"""

_aten = torch.ops.aten
_OF_LAYOUT = {_aten.as_strided.default, _aten.view.dtype, _aten.view_as_complex.default}
"""Operators that depend on the memory layout of their operand."""


@dataclasses.dataclass(slots=True)
class Plan:
    """The parts of a graph that are compiled to kernels.

    Attributes:
        groups: groups of operators with their definitions.
        refused: reasons why other operators run in eager.
    """

    groups: list[LoweredGroup]
    refused: dict[_Node, str]
    num_operators: int

    @property
    def fallback_share(self) -> float:
        """Share of the operators, not counting views, that run in eager."""
        if not self.num_operators:
            return 0.0
        covered = sum(is_counted(node) for group in self.groups for node in group.nodes)
        return 1 - covered / self.num_operators


def plan_graph(graph: torch.fx.Graph, *, min_ops: int = 1, contractions: str = "auto") -> Plan:
    """Group an aten graph into definitions, and record reasons for the remaining operators.

    Args:
        min_ops: groups with fewer operators run in eager.
        contractions: "never" runs matrix products and convolutions in eager.
    """
    refused: dict[_Node, str] = {}
    counted = [node for node in graph.nodes if is_counted(node)]
    for node in graph.nodes:
        if node.op == "call_function":
            reason = reason_against(node)
            if not reason and contractions == "never" and is_contraction(node):
                reason = "Contractions are left to eager."
            if reason:
                refused[node] = reason
    groups: list[LoweredGroup] = []
    for number, nodes in enumerate(group_nodes(graph, refused)):
        operators = [node for node in nodes if is_counted(node)]
        if len(operators) < min_ops:
            refused.update(dict.fromkeys(operators, "Its group has too few operators."))
            continue
        try:
            groups.append(lower_group(nodes, f"group_{number}"))
        except UnsupportedError as error:
            refused.update(dict.fromkeys(operators, str(error)))
    return Plan(groups, refused, len(counted))


class GraphKernels:
    """Compiles the groups of a captured graph and inserts the kernels.

    Attributes:
        failures: reason of the fallback, by the source of the group.
        compiled_groups: groups that agree with eager, with their kernels.
    """

    def __init__(self, captured: CapturedGraph, plan: Plan, cache: KernelCache) -> None:
        self.captured, self.plan, self.cache = captured, plan, cache
        self.failures: dict[str, str] = {}
        self.compiled_groups: list[tuple[LoweredGroup, GroupKernel]] = []

    def build(self, tensors: tuple[torch.Tensor, ...]) -> torch.fx.GraphModule:
        """Compile the groups and return the graph with kernels.

        Args:
            tensors: inputs of an example call, on which each kernel is compared with eager.
        """
        runner = _Recorder(self.captured.module, self.plan.groups)
        with torch.no_grad():
            runner.run(*self.captured.arguments(tensors))
        grouped = {node for group in self.plan.groups for node in group.nodes}
        graph = self.captured.module.graph
        keeps_layout = any(
            node.target in _OF_LAYOUT and node not in grouped for node in graph.nodes
        )
        for number, group in enumerate(self.plan.groups):
            inputs, expected = runner.recorded[number]
            strides = [tensor.stride() for tensor in expected] if keeps_layout else ()
            kernel = None
            try:
                device = expected[0].device
                compiled = self.cache.kernel(group, inputs, device)
                kernel = GroupKernel(group, compiled, strides, device)
                problem = _difference(kernel(*inputs), expected, _scale(inputs))
            except (TensorComprehensionError, RuntimeError, ValueError, OSError) as error:
                problem = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            runner.recorded[number] = ((), ())
            if problem or kernel is None:
                self.failures[group.source] = problem
                _logger.info("A group runs in eager: %s\n%s", problem, group.source)
                continue
            self.compiled_groups.append((group, kernel))
        groups = [group for group, _ in self.compiled_groups]
        self.plan.groups = groups
        return _replaced(self.captured.module, self.compiled_groups)


class _Recorder(torch.fx.Interpreter):
    """Runs the graph in eager and records the inputs and outputs of each group."""

    def __init__(self, module: torch.fx.GraphModule, groups: Sequence[LoweredGroup]) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.groups = groups
        self.recorded: dict[int, tuple[Sequence[Any], Sequence[Any]]] = {}

    def run(self, *arguments: Any, **_: Any) -> Any:  # type: ignore[override]
        """Run the graph and record the groups."""
        result = super().run(*arguments)
        for number, group in enumerate(self.groups):
            inputs = tuple(self.env[node] for node in group.inputs)
            outputs = tuple(self.env[output.node] for output in group.outputs)
            self.recorded[number] = (inputs, outputs)
        self.env.clear()
        return result


def _difference(
    actual_results: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], input_scale: float
) -> str:
    """Describe a difference that rounding does not explain, or return "".

    The tolerance also scales with the inputs, because sums of large numbers may nearly cancel.
    """
    for actual, reference in zip(actual_results, expected, strict=True):
        if actual.shape != reference.shape or actual.dtype != reference.dtype:
            return (
                f"A result is {actual.dtype}, {actual.shape}, not {reference.dtype}, "
                f"{reference.shape}."
            )
        if not reference.is_floating_point():
            if not torch.equal(actual, reference):
                return "An integer or boolean result differs from eager."
            continue
        tight = _TOLERANCES.get(reference.dtype, 2e-5)
        scale = _scale([reference])
        limit = max(tight * scale, tight / 10 * input_scale)
        if not torch.allclose(actual, reference, rtol=tight, atol=limit, equal_nan=True):
            gap = (actual - reference).abs().nan_to_num().max().item()
            return f"A result differs from eager by {gap:.3g}; its largest value is {scale:.3g}."
    return ""


def _scale(tensors: Sequence[torch.Tensor]) -> float:
    """Return the largest finite magnitude in floating-point tensors."""
    largest = 0.0
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.numel():
            largest = max(largest, tensor.detach().nan_to_num(0.0, 0.0, 0.0).abs().max().item())
    return largest


def _replaced(
    module: torch.fx.GraphModule, groups: Sequence[tuple[LoweredGroup, GroupKernel]]
) -> torch.fx.GraphModule:
    """Return a graph that calls a kernel for each group."""
    group_of = {node: number for number, (group, _) in enumerate(groups) for node in group.nodes}
    graph = torch.fx.Graph()
    new_nodes: dict[_Node, _Node] = {}
    done: set[int] = set()
    root: dict[str, Any] = {f"kernel_{number}": kernel for number, (_, kernel) in enumerate(groups)}

    def emit(node: _Node) -> None:
        stack = [node]
        while stack:
            current = stack[-1]
            number = group_of.get(current)
            if current in new_nodes or number in done:
                stack.pop()
                continue
            operands = groups[number][0].inputs if number is not None else current.all_input_nodes
            missing = [operand for operand in operands if operand not in new_nodes]
            lost = [operand for operand in missing if group_of.get(operand) in done]
            if lost:
                raise TensorComprehensionError(
                    f"`{lost[0]}` is computed in a group and used outside of it, but it is not an "
                    "output of the group."
                )
            if missing:
                stack += missing
                continue
            stack.pop()
            if number is None:
                new_nodes[current] = graph.node_copy(current, lambda operand: new_nodes[operand])
            else:
                _call(number)

    def _call(number: int) -> None:
        group = groups[number][0]
        arguments = tuple(new_nodes[operand] for operand in group.inputs)
        call = graph.call_module(f"kernel_{number}", arguments)
        for place, output in enumerate(group.outputs):
            new_nodes[output.node] = graph.call_function(operator.getitem, (call, place))
        done.add(number)

    for node in module.graph.nodes:
        if node.op == "get_attr":
            root[str(node.target)] = _attribute(module, str(node.target))
        emit(node)
    result = torch.fx.GraphModule(root, graph)
    result.graph.eliminate_dead_code()
    result.recompile()
    return result


def _attribute(module: torch.fx.GraphModule, target: str) -> Any:
    value: Any = module
    for name in target.split("."):
        value = getattr(value, name)
    return value
