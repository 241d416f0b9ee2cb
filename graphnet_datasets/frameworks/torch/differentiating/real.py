"""The joint graph of a sample whose sizes follow from its elements, traced on real tensors.

AOTAutograd traces on tensors without elements, of which nobody can say how many are not zero. Here
the call and its gradients are traced as they run; sizes that follow from elements become literals,
and what the graph writes in place stays written in place.
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
    """Return the joint graph of a call, with descriptors as those of AOTAutograd.

    Outputs without a gradient have no tangent; the gradient of a tensor on which no output depends
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
    given = end.args[0]
    end.meta["desc"] = [
        *(descriptors.PlainAOTOutput(idx=place) for place in range(len(outputs))),
        *(
            descriptors.GradAOTOutput(grad_of=descriptors.PlainAOTInput(idx=place))
            for place in wanted
        ),
    ]
    _Noting(module).run(*primals, *tangents)
    _tag_forward(given[: len(outputs)])
    _tag_backward(inputs[len(primals) :])
    module.recompile()
    return module


def _leaves(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]


def _rename(node: torch.fx.Node, name: str) -> None:
    node.target = name
    node._rename(name)


def _tag_forward(outputs: Sequence[Any]) -> None:
    """Mark what outputs are made of, by which a partition tells the forward part."""
    pending = [node for node in outputs if isinstance(node, torch.fx.Node)]
    while pending:
        node = pending.pop()
        if node.op != "placeholder" and "partitioner_tag" not in node.meta:
            node.meta["partitioner_tag"] = "is_forward"
            pending += node.all_input_nodes


def _tag_backward(tangents: Sequence[torch.fx.Node]) -> None:
    """Mark what depends on the gradients of outputs.

    A partition takes an operator that writes in place for a part of the forward graph otherwise.
    """
    pending = list(tangents)
    while pending:
        for user in pending.pop().users:
            if user.op != "output" and "partitioner_tag" not in user.meta:
                user.meta["partitioner_tag"] = "is_backward"
                pending.append(user)


class _Noting(torch.fx.Interpreter):
    """Runs a graph and notes what each node gives, without its elements."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode()

    def run_node(self, n: torch.fx.Node) -> Any:
        """Run one node."""
        result = super().run_node(n)
        n.meta["val"] = pytree.tree_map_only(
            torch.Tensor, lambda each: self._mode.from_tensor(each, static_shapes=True), result
        )
        return result
