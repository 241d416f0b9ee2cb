"""Which nodes of a graph go into one kernel: convex groups of nodes that rules cover.

Nodes are taken in order. One that a rule covers joins the group of one of its operands if the
groups, with every other node as a group of its own, still have no cycle; a contraction begins a
group, so that no kernel computes two whose loops would have to be the same. Views at the edge of a
group are given back: there they cost nothing outside, and inside they would complicate subscripts.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

import torch

from .registry import Lowering, UnsupportedError, meta_of, operator_name
from .rules import RULES, VIEWS

MAX_STATEMENTS = 12
"""Estimated statements of a group above which nothing joins it."""

_CONTRACTIONS = ("mm", "addmm", "bmm", "baddbmm", "mv", "dot", "convolution")
_WEIGHTS = {
    **dict.fromkeys(_CONTRACTIONS, 2.0),
    **dict.fromkeys(("_softmax", "_log_softmax", "logsumexp", "var", "std", "var_mean"), 3.0),
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), 5.0),
    **dict.fromkeys(("sum", "mean", "amax", "amin", "prod", "any", "all", "cat", "stack"), 1.0),
    **dict.fromkeys(("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d"), 2.0),
}
_Node = torch.fx.Node


def reason_against(node: _Node) -> str:
    """Return why no rule covers a node, "" if one does.

    The rule is tried on the node alone, so that its own word is taken for what it covers.
    """
    if node.op != "call_function":
        return "it is not an operator"
    if node.target is operator.getitem:
        return ""
    name = operator_name(node)
    if name not in RULES:
        return "it has no rule"
    lowering = Lowering("probe")
    try:
        for operand in node.all_input_nodes:
            meta = meta_of(operand)
            if meta.device.type != "cpu":
                return "it is not on the CPU"
            lowering.parameter(operand)
        lowering.lower(node)
        made = lowering.values[node]
        for each in made if isinstance(made, tuple) else (made,):
            if each is not None:
                lowering.block.output(each, "probe")
    except UnsupportedError as error:
        return str(error)
    return ""


def is_view(node: _Node) -> bool:
    """Tell whether a node computes nothing."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, _Node) and operator_name(source) in VIEWS
    return operator_name(node) in VIEWS


def is_counted(node: _Node) -> bool:
    """Tell whether a node counts as an operator: views, checks and arithmetic of sizes do not."""
    name = operator_name(node)
    is_check = name.startswith(("aten._assert", "aten.sym_"))
    return bool(name) and not is_check and not is_view(node)


def weight(node: _Node) -> float:
    """Return the estimated number of statements of a node."""
    name = operator_name(node)
    short = name.split(".")[1] if name else ""
    return _WEIGHTS.get(short, 0.0 if is_view(node) else 0.35)


def is_contraction(node: _Node) -> bool:
    """Tell whether a node is a product of matrices or a convolution."""
    name = operator_name(node)
    return bool(name) and name.split(".")[1] in _CONTRACTIONS


def group_nodes(graph: torch.fx.Graph, refused: Mapping[_Node, str]) -> list[list[_Node]]:
    """Return the groups, each in the order of the graph.

    Args:
        graph: an aten graph.
        refused: the nodes that no rule covers.
    """
    groups = _Groups()
    for node in graph.nodes:
        candidates: list[int] = []
        is_open = node.op == "call_function" and node not in refused
        must_join = node.target is operator.getitem
        if must_join and node.args[0] in refused:
            is_open = False
        if is_open:
            operands = [each for each in node.all_input_nodes if each not in refused]
            found = [groups.of[each] for each in operands if groups.sizes[groups.of[each]] >= 0]
            candidates = sorted(set(found), reverse=True)
            if is_contraction(node):
                candidates = []
        for candidate in candidates:
            fits = must_join or groups.sizes[candidate] + weight(node) <= MAX_STATEMENTS
            if fits and groups.may_join(node, candidate):
                groups.join(node, candidate)
                break
        else:
            groups.open(node, weight(node) if is_open else -1.0)
    found_groups = [
        peeled(each) for number, each in groups.members.items() if groups.sizes[number] >= 0
    ]
    return [each for each in found_groups if any(is_counted(node) for node in each)]


def peeled(nodes: list[_Node]) -> list[_Node]:
    """Return a group without the views that only look at its inputs or outputs.

    The parts of one split stay together: a kernel gives its parts to others, never the split.
    """
    kept = set(nodes)
    for node in nodes:
        if is_view(node) and not any(each in kept for each in node.all_input_nodes):
            kept.discard(node)
    for node in reversed(nodes):
        if node in kept and is_view(node) and not any(each in kept for each in node.users):
            kept.discard(node)
    kept |= {node for node in nodes if node.target is operator.getitem and node.args[0] in kept}
    return [node for node in nodes if node in kept]


class _Groups:
    """The groups so far and the edges between them.

    Attributes:
        of: the group of each node.
        members: the nodes of each group.
        sizes: the estimated statements of each group, -1 for what nothing may join.
        users: the groups that read a group's results.
    """

    def __init__(self) -> None:
        self.of: dict[_Node, int] = {}
        self.members: dict[int, list[_Node]] = {}
        self.sizes: dict[int, float] = {}
        self.users: dict[int, set[int]] = {}

    def open(self, node: _Node, size: float) -> None:
        """Begin a group with a node."""
        number = len(self.members)
        self.members[number], self.sizes[number], self.users[number] = [], size, set()
        self._enter(node, number)

    def join(self, node: _Node, number: int) -> None:
        """Add a node to a group."""
        self.sizes[number] += weight(node)
        self._enter(node, number)

    def may_join(self, node: _Node, number: int) -> bool:
        """Tell whether no other operand of the node depends on the group."""
        others = {self.of[each] for each in node.all_input_nodes} - {number}
        seen, stack = set(), list(self.users[number])
        while stack:
            each = stack.pop()
            if each in others:
                return False
            if each not in seen:
                seen.add(each)
                stack += self.users[each]
        return True

    def _enter(self, node: _Node, number: int) -> None:
        self.of[node] = number
        self.members[number].append(node)
        for operand in node.all_input_nodes:
            if self.of[operand] != number:
                self.users[self.of[operand]].add(number)
