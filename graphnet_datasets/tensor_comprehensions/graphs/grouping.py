"""Grouping of nodes into kernels: convex groups of nodes that have rules.

Nodes are visited in order. A node with a rule joins the group of one of its operands, provided that
the graph of groups (every other node being its own group) remains acyclic. A contraction starts a
new group, because two contractions in a kernel would have to share loops. Views at the edges of a
group are removed: outside a kernel they are free, inside they complicate subscripts.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

import torch

from .registry import Lowering, UnsupportedError, meta_of, operator_name
from .rules import RULES, VIEWS

MAX_STATEMENTS = 12
"""Estimated number of statements above which no node joins a group."""

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
    """Return the reason why no rule covers a node, or "".

    The rule is applied to the node alone, so the rule itself decides which forms it covers.
    """
    if node.op != "call_function":
        return "The node is not an operator."
    if node.target is operator.getitem:
        return ""
    name = operator_name(node)
    if name not in RULES:
        return "The operator has no rule."
    lowering = Lowering("probe")
    try:
        for operand in node.all_input_nodes:
            meta = meta_of(operand)
            if meta.device.type != "cpu":
                return "An operand is not on the CPU."
            lowering.parameter(operand)
        lowering.lower(node)
        results = lowering.values[node]
        for value in results if isinstance(results, tuple) else (results,):
            if value is not None:
                lowering.block.output(value, "probe")
    except UnsupportedError as error:
        return str(error)
    return ""


def is_view(node: _Node) -> bool:
    """Return whether a node computes nothing."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, _Node) and operator_name(source) in VIEWS
    return operator_name(node) in VIEWS


def is_counted(node: _Node) -> bool:
    """Return whether a node counts as an operator; views, checks and size arithmetic do not."""
    name = operator_name(node)
    is_check = name.startswith(("aten._assert", "aten.sym_"))
    return bool(name) and not is_check and not is_view(node)


def weight(node: _Node) -> float:
    """Return the estimated number of statements of a node."""
    name = operator_name(node)
    short = name.split(".")[1] if name else ""
    return _WEIGHTS.get(short, 0.0 if is_view(node) else 0.35)


def is_contraction(node: _Node) -> bool:
    """Return whether a node is a matrix product or a convolution."""
    name = operator_name(node)
    return bool(name) and name.split(".")[1] in _CONTRACTIONS


def group_nodes(graph: torch.fx.Graph, refused: Mapping[_Node, str]) -> list[list[_Node]]:
    """Return the groups, each in the order of the graph.

    Args:
        graph: an aten graph.
        refused: nodes without a rule.
    """
    groups = _Groups()
    for node in graph.nodes:
        candidates: list[int] = []
        is_open = node.op == "call_function" and node not in refused
        must_join = node.target is operator.getitem
        if must_join and node.args[0] in refused:
            is_open = False
        if is_open:
            operands = [operand for operand in node.all_input_nodes if operand not in refused]
            operand_groups = [
                groups.of[operand] for operand in operands if groups.sizes[groups.of[operand]] >= 0
            ]
            candidates = sorted(set(operand_groups), reverse=True)
            if is_contraction(node):
                candidates = []
        for candidate in candidates:
            fits = must_join or groups.sizes[candidate] + weight(node) <= MAX_STATEMENTS
            if fits and groups.may_join(node, candidate):
                groups.join(node, candidate)
                break
        else:
            groups.open(node, weight(node) if is_open else -1.0)
    peeled_groups = [
        peeled(members) for number, members in groups.members.items() if groups.sizes[number] >= 0
    ]
    return [group for group in peeled_groups if any(is_counted(node) for node in group)]


def peeled(nodes: list[_Node]) -> list[_Node]:
    """Remove the views at the inputs and outputs of a group.

    The results of a split stay with the split, because a kernel cannot return the split itself.
    """
    remaining = set(nodes)
    for node in nodes:
        if is_view(node) and not any(operand in remaining for operand in node.all_input_nodes):
            remaining.discard(node)
    for node in reversed(nodes):
        if (
            node in remaining
            and is_view(node)
            and not any(user in remaining for user in node.users)
        ):
            remaining.discard(node)
    remaining |= {
        node for node in nodes if node.target is operator.getitem and node.args[0] in remaining
    }
    return [node for node in nodes if node in remaining]


class _Groups:
    """The groups built so far, and the edges between them.

    Attributes:
        of: group of each node.
        members: nodes of each group.
        sizes: estimated number of statements of each group; -1 if no node may join.
        users: groups that read the results of each group.
    """

    def __init__(self) -> None:
        self.of: dict[_Node, int] = {}
        self.members: dict[int, list[_Node]] = {}
        self.sizes: dict[int, float] = {}
        self.users: dict[int, set[int]] = {}

    def open(self, node: _Node, size: float) -> None:
        """Start a group with a node."""
        number = len(self.members)
        self.members[number], self.sizes[number], self.users[number] = [], size, set()
        self._enter(node, number)

    def join(self, node: _Node, number: int) -> None:
        """Add a node to a group."""
        self.sizes[number] += weight(node)
        self._enter(node, number)

    def may_join(self, node: _Node, number: int) -> bool:
        """Return whether no other operand of the node depends on the group."""
        others = {self.of[operand] for operand in node.all_input_nodes} - {number}
        seen, stack = set(), list(self.users[number])
        while stack:
            current = stack.pop()
            if current in others:
                return False
            if current not in seen:
                seen.add(current)
                stack += self.users[current]
        return True

    def _enter(self, node: _Node, number: int) -> None:
        self.of[node] = number
        self.members[number].append(node)
        for operand in node.all_input_nodes:
            if self.of[operand] != number:
                self.users[self.of[operand]].add(number)
