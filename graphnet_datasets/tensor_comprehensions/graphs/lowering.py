"""Lowering of a group of nodes to a definition."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from .block import MAX_INLINED, UnsupportedError, Value
from .grouping import is_contraction
from .registry import Lowering, meta_of, widened


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """A result of a group: the node, the tensor of the definition, and the shape of the node."""

    node: torch.fx.Node
    tensor: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class LoweredGroup:
    """A group as a definition.

    Attributes:
        nodes: nodes computed by the group, in order.
        inputs: nodes passed to the group, in the order of the parameters.
        outputs: results used by the rest of the graph.
        source: source of the definition.
    """

    nodes: tuple[torch.fx.Node, ...]
    inputs: tuple[torch.fx.Node, ...]
    outputs: tuple[Output, ...]
    source: str


def lower_group(nodes: Sequence[torch.fx.Node], name: str) -> LoweredGroup:
    """Lower a group of nodes to a definition.

    Raises:
        UnsupportedError: the rule of a node does not compute a result that is used outside.
    """
    group_nodes = set(nodes)
    lowering = Lowering(name)
    inputs: list[torch.fx.Node] = []
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand not in group_nodes and operand not in lowering.values:
                lowering.parameter(operand)
                inputs.append(operand)
    outputs: list[Output] = []
    values: list[Value] = []
    for node in nodes:
        lowering.lower(node)
        value = lowering.values[node]
        if not isinstance(value, Value):
            continue
        leaves = any(user not in group_nodes for user in node.users)
        num_users = len(node.users)
        is_reused = num_users > 1 and value.cost > 2
        feeds_product = value.cost > 0 and any(is_contraction(user) for user in node.users)
        if leaves:
            output = lowering.output(value, node)
            values.append(output)
            outputs.append(Output(node, output.buffer, tuple(meta_of(node).shape)))
            value = output if output.dtype == value.dtype else widened(output)
        elif is_reused or value.cost > MAX_INLINED or feeds_product:
            value = lowering.block.stored(value, node.name)
        lowering.values[node] = value
    if not outputs:
        raise UnsupportedError("None of its results is used.")
    text = lowering.block.text(values)
    return LoweredGroup(tuple(nodes), tuple(inputs), tuple(outputs), text)
