"""A captured graph with its groups replaced by kernels, each checked against eager."""

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
"""Relative, by type; float32's is 2e-5. Of the 16-bit ones, two units of the last place."""

_aten = torch.ops.aten
_OF_LAYOUT = {_aten.as_strided.default, _aten.view.dtype, _aten.view_as_complex.default}
"""What reads memory as it lies."""


@dataclasses.dataclass(slots=True)
class Plan:
    """What of a graph goes into kernels.

    Attributes:
        groups: the definitions.
        refused: why each other operator stays with eager.
    """

    groups: list[LoweredGroup]
    refused: dict[_Node, str]
    num_operators: int

    @property
    def fallback_share(self) -> float:
        """The share of the operators, views apart, that stay with eager."""
        if not self.num_operators:
            return 0.0
        covered = sum(is_counted(node) for group in self.groups for node in group.nodes)
        return 1 - covered / self.num_operators


def plan_graph(graph: torch.fx.Graph, *, min_ops: int = 1, contractions: str = "auto") -> Plan:
    """Return the groups of an aten graph as definitions, and why the rest is left.

    Args:
        min_ops: groups of fewer operators stay with eager.
        contractions: "never" leaves products and convolutions to eager.
    """
    refused: dict[_Node, str] = {}
    counted = [node for node in graph.nodes if is_counted(node)]
    for node in graph.nodes:
        if node.op == "call_function":
            reason = reason_against(node)
            if not reason and contractions == "never" and is_contraction(node):
                reason = "contractions are left to eager"
            if reason:
                refused[node] = reason
    groups: list[LoweredGroup] = []
    for number, nodes in enumerate(group_nodes(graph, refused)):
        operators = [node for node in nodes if is_counted(node)]
        if len(operators) < min_ops:
            refused.update(dict.fromkeys(operators, "its group is small"))
            continue
        try:
            groups.append(lower_group(nodes, f"group_{number}"))
        except UnsupportedError as error:
            refused.update(dict.fromkeys(operators, str(error)))
    return Plan(groups, refused, len(counted))


class GraphKernels:
    """Compiles the groups of a captured graph and puts the kernels into it.

    Attributes:
        failures: why, for the text of each group that fell back.
        kept: the groups that were compiled and agree with eager, with their kernels.
    """

    def __init__(self, captured: CapturedGraph, plan: Plan, cache: KernelCache) -> None:
        self.captured, self.plan, self.cache = captured, plan, cache
        self.failures: dict[str, str] = {}
        self.kept: list[tuple[LoweredGroup, GroupKernel]] = []

    def build(self, tensors: tuple[torch.Tensor, ...]) -> torch.fx.GraphModule:
        """Return the graph with kernels in it.

        Args:
            tensors: the inputs of an example call, on which every kernel is compared with eager.
        """
        runner = _Recorder(self.captured.module, self.plan.groups)
        with torch.no_grad():
            runner.run(*self.captured.arguments(tensors))
        inside = {node for group in self.plan.groups for node in group.nodes}
        graph = self.captured.module.graph
        keeps_layout = any(each.target in _OF_LAYOUT and each not in inside for each in graph.nodes)
        for number, group in enumerate(self.plan.groups):
            inputs, expected = runner.recorded[number]
            strides = [each.stride() for each in expected] if keeps_layout else ()
            made = None
            try:
                made = GroupKernel(group, self.cache.kernel(group, inputs), strides)
                problem = _difference(made(*inputs), expected, _scale(inputs))
            except (TensorComprehensionError, RuntimeError, ValueError, OSError) as error:
                problem = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            runner.recorded[number] = ((), ())
            if problem or made is None:
                self.failures[group.source] = problem
                _logger.info("A group stays with eager: %s\n%s", problem, group.source)
                continue
            self.kept.append((group, made))
        kept = [group for group, _ in self.kept]
        self.plan.groups = kept
        return _replaced(self.captured.module, self.kept)


class _Recorder(torch.fx.Interpreter):
    """Runs the graph eagerly and keeps what goes into and comes out of each group."""

    def __init__(self, module: torch.fx.GraphModule, groups: Sequence[LoweredGroup]) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.groups = groups
        self.recorded: dict[int, tuple[Sequence[Any], Sequence[Any]]] = {}

    def run(self, *arguments: Any, **_: Any) -> Any:  # type: ignore[override]
        """Run it and gather."""
        result = super().run(*arguments)
        for number, group in enumerate(self.groups):
            inputs = tuple(self.env[node] for node in group.inputs)
            outputs = tuple(self.env[each.node] for each in group.outputs)
            self.recorded[number] = (inputs, outputs)
        self.env.clear()
        return result


def _difference(
    found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], input_scale: float
) -> str:
    """Say where results differ more than rounding explains, "" if they do not.

    Sums of large numbers may nearly cancel, so that errors are also seen beside the inputs.
    """
    for mine, theirs in zip(found, expected, strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"a result is {mine.dtype}, {mine.shape}, not {theirs.dtype}, {theirs.shape}"
        if not theirs.is_floating_point():
            if not torch.equal(mine, theirs):
                return "a result of integers or booleans differs"
            continue
        tight = _TOLERANCES.get(theirs.dtype, 2e-5)
        scale = _scale([theirs])
        limit = max(tight * scale, tight / 10 * input_scale)
        if not torch.allclose(mine, theirs, rtol=tight, atol=limit, equal_nan=True):
            gap = (mine - theirs).abs().nan_to_num().max().item()
            return f"a result differs from eager's by {gap:.3g} where the largest is {scale:.3g}"
    return ""


def _scale(tensors: Sequence[torch.Tensor]) -> float:
    """Return the largest finite magnitude among tensors of floats."""
    largest = 0.0
    for each in tensors:
        if each.is_floating_point() and each.numel():
            largest = max(largest, each.detach().nan_to_num(0.0, 0.0, 0.0).abs().max().item())
    return largest


def _replaced(
    module: torch.fx.GraphModule, kept: Sequence[tuple[LoweredGroup, GroupKernel]]
) -> torch.fx.GraphModule:
    """Return the graph with every group as one call of its kernel."""
    group_of = {node: number for number, (group, _) in enumerate(kept) for node in group.nodes}
    graph = torch.fx.Graph()
    made: dict[_Node, _Node] = {}
    done: set[int] = set()
    root: dict[str, Any] = {f"kernel_{number}": kernel for number, (_, kernel) in enumerate(kept)}

    def emit(node: _Node) -> None:
        stack = [node]
        while stack:
            current = stack[-1]
            number = group_of.get(current)
            if current in made or number in done:
                stack.pop()
                continue
            needed = kept[number][0].inputs if number is not None else current.all_input_nodes
            missing = [each for each in needed if each not in made]
            lost = [each for each in missing if group_of.get(each) in done]
            if lost:
                raise TensorComprehensionError(
                    f"`{lost[0]}` is computed in a group and needed outside of it, but is none of "
                    "the group's outputs."
                )
            if missing:
                stack += missing
                continue
            stack.pop()
            if number is None:
                made[current] = graph.node_copy(current, lambda each: made[each])
            else:
                _call(number)

    def _call(number: int) -> None:
        group = kept[number][0]
        arguments = tuple(made[each] for each in group.inputs)
        call = graph.call_module(f"kernel_{number}", arguments)
        for place, output in enumerate(group.outputs):
            made[output.node] = graph.call_function(operator.getitem, (call, place))
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
    found: Any = module
    for name in target.split("."):
        found = getattr(found, name)
    return found
