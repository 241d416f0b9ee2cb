"""From a group of nodes to the text of a definition."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from .block import MAX_INLINED, UnsupportedError, Value
from .grouping import is_contraction
from .registry import Lowering, meta_of, widened


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """A result of a group: the node, the tensor of the definition, and the node's shape."""

    node: torch.fx.Node
    tensor: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class LoweredGroup:
    """A group as a definition.

    Attributes:
        nodes: the nodes that it computes, in order.
        inputs: the nodes whose values it takes, in the order of the parameters.
        outputs: what it gives to the rest of the graph.
        source: the definition.
    """

    nodes: tuple[torch.fx.Node, ...]
    inputs: tuple[torch.fx.Node, ...]
    outputs: tuple[Output, ...]
    source: str


def lower_group(nodes: Sequence[torch.fx.Node], name: str) -> LoweredGroup:
    """Return the definition of a group.

    Raises:
        UnsupportedError: a result that is needed outside is not computed by its rule.
    """
    own = set(nodes)
    lowering = Lowering(name)
    inputs: list[torch.fx.Node] = []
    for node in nodes:
        for operand in node.all_input_nodes:
            if operand not in own and operand not in lowering.values:
                lowering.parameter(operand)
                inputs.append(operand)
    outputs: list[Output] = []
    values: list[Value] = []
    for node in nodes:
        lowering.lower(node)
        value = lowering.values[node]
        if not isinstance(value, Value):
            continue
        leaves = any(each not in own for each in node.users)
        num_users = len(node.users)
        is_reused = num_users > 1 and value.cost > 2
        feeds_product = value.cost > 0 and any(is_contraction(each) for each in node.users)
        if leaves:
            made = lowering.output(value, node)
            values.append(made)
            outputs.append(Output(node, made.buffer, tuple(meta_of(node).shape)))
            value = made if made.dtype == value.dtype else widened(made)
        elif is_reused or value.cost > MAX_INLINED or feeds_product:
            value = lowering.block.stored(value, node.name)
        lowering.values[node] = value
    if not outputs:
        raise UnsupportedError("nothing of it is used")
    text = lowering.block.text(values)
    return LoweredGroup(tuple(nodes), tuple(inputs), tuple(outputs), text)
