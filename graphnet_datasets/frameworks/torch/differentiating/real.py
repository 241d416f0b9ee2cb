"""Tracing of joint graphs with data-dependent sizes, on real tensors.

AOTAutograd traces on fake tensors, whose data-dependent sizes are unknown. Here the call and its
gradients are traced while they run. Data-dependent sizes become literals, and in-place writes stay
in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd import descriptors
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from .calling import Call
from .rules import make_rules_of_unknown_sizes


def trace_real(call: Call, tensors: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """Return the joint graph of a call, with AOTAutograd's descriptors.

    Outputs without a gradient have no tangent. The gradient of a tensor that no output depends on
    is None.
    """
    with torch.enable_grad():
        outputs = call(*_leaves(tensors))
    chosen = [place for place, output in enumerate(outputs) if output.requires_grad]
    wanted = [place for place, tensor in enumerate(tensors) if tensor.requires_grad]
    tangents = [torch.ones_like(outputs[place]) for place in chosen]

    def joint(primals: list[torch.Tensor], tangents: list[torch.Tensor]) -> list[Any]:
        leaves = [
            tensor.detach().requires_grad_(place in wanted) for place, tensor in enumerate(primals)
        ]
        with torch.enable_grad():
            results = call(*leaves)
        gradients: Sequence[Any] = [None] * len(wanted)
        if chosen:
            gradients = torch.autograd.grad(
                [results[place] for place in chosen],
                [leaves[place] for place in wanted],
                tangents,
                allow_unused=True,
            )
        return [*results, *gradients]

    primals = [tensor.detach() for tensor in tensors]
    module = make_fx(joint, decomposition_table=make_rules_of_unknown_sizes())(primals, tangents)
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for place, node in enumerate(inputs):
        if place < len(primals):
            node.meta["desc"] = descriptors.PlainAOTInput(idx=place)
        else:
            output = descriptors.PlainAOTOutput(idx=chosen[place - len(primals)])
            node.meta["desc"] = descriptors.TangentAOTInput(output=output)
            _rename(node, f"tangents_{place - len(primals)}")
    (end,) = (node for node in module.graph.nodes if node.op == "output")
    returned = end.args[0]
    end.meta["desc"] = [
        *(descriptors.PlainAOTOutput(idx=place) for place in range(len(outputs))),
        *(
            descriptors.GradAOTOutput(grad_of=descriptors.PlainAOTInput(idx=place))
            for place in wanted
        ),
    ]
    _Noting(module).run(*primals, *tangents)
    _tag_forward(returned[: len(outputs)])
    _tag_backward(inputs[len(primals) :])
    module.recompile()
    return module


def _leaves(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]


def _rename(node: torch.fx.Node, name: str) -> None:
    node.target = name
    node._rename(name)


def _tag_forward(outputs: Sequence[Any]) -> None:
    """Tag the nodes that outputs depend on, so that a partitioner finds the forward part."""
    pending = [node for node in outputs if isinstance(node, torch.fx.Node)]
    while pending:
        node = pending.pop()
        if node.op != "placeholder" and "partitioner_tag" not in node.meta:
            node.meta["partitioner_tag"] = "is_forward"
            pending += node.all_input_nodes


def _tag_backward(tangents: Sequence[torch.fx.Node]) -> None:
    """Tag the nodes that depend on tangents.

    Without the tag, a partitioner would put in-place operators in the forward graph.
    """
    pending = list(tangents)
    while pending:
        for user in pending.pop().users:
            if user.op != "output" and "partitioner_tag" not in user.meta:
                user.meta["partitioner_tag"] = "is_backward"
                pending.append(user)


class _Noting(torch.fx.Interpreter):
    """Runs a graph and records a fake tensor for each node's result."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode()

    def run_node(self, n: torch.fx.Node) -> Any:
        """Run one node."""
        result = super().run_node(n)
        n.meta["val"] = pytree.tree_map_only(
            torch.Tensor, lambda tensor: self._mode.from_tensor(tensor, static_shapes=True), result
        )
        return result
