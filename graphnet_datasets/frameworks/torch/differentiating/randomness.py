"""Conversion of a traced graph's random numbers to arguments, to make gradients repeatable."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch._functorch._aot_autograd.descriptors import PlainAOTInput
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ....errors import GradientError

_ATEN = torch.ops.aten


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Random numbers drawn by a graph: the operator, and its order among all draws."""

    operator: str
    order: int


def lift_random_numbers(module: torch.fx.GraphModule, name: str) -> dict[str, Drawn]:
    """Replace each operator that draws random numbers by an argument.

    For a dropout, the argument is the mask. Arguments are named `random_0`, … in drawing order and
    follow the inputs of the sample.

    Raises:
        GradientError: If the random numbers are not the operator's result.
    """
    graph = module.graph
    drawn: dict[str, Drawn] = {}
    place = next((node for node in graph.nodes if not _is_primal(node)), None)
    for node in [node for node in graph.nodes if _is_random(node.target, node.args, node.kwargs)]:
        value = node.meta.get("val")
        is_dropout = node.target is _ATEN.native_dropout.default
        numbers = value[1] if is_dropout else value
        if not isinstance(numbers, torch.Tensor):
            raise GradientError(
                f"`{name}` calls `{node.target}`, which draws random numbers and uses them in the "
                "same call. Disable it with `eval()`, or skip the sample."
            )
        argument = f"random_{len(drawn)}"
        with graph.inserting_before(place):
            placeholder = graph.placeholder(argument)
        placeholder.meta = {**_tags(node), "val": numbers}
        drawn[placeholder.name] = Drawn(str(node.target), len(drawn))
        if is_dropout:
            _write_out_dropout(graph, node, placeholder)
        else:
            node.replace_all_uses_with(placeholder)
        if not node.users:
            graph.erase_node(node)
    if drawn:
        graph.eliminate_dead_code()
        module.recompile()
    return drawn


def _is_primal(node: torch.fx.Node) -> bool:
    return node.op == "placeholder" and isinstance(node.meta.get("desc"), PlainAOTInput)


def _write_out_dropout(graph: torch.fx.Graph, node: torch.fx.Node, mask: torch.fx.Node) -> None:
    source, share = node.args[0], node.args[1]
    assert isinstance(share, float)  # noqa: S101 - by the operator's schema
    scale = 0.0 if share == 1 else 1.0 / (1.0 - share)
    with graph.inserting_before(node):
        masked = graph.call_function(_ATEN.mul.Tensor, (source, mask))
        scaled = graph.call_function(_ATEN.mul.Scalar, (masked, scale))
    for inserted in (masked, scaled):
        inserted.meta = {**_tags(node), "val": node.meta["val"][0]}
    for user in list(node.users):
        user.replace_all_uses_with(scaled if user.args[1] == 0 else mask)
        graph.erase_node(user)


def _tags(node: torch.fx.Node) -> dict[str, Any]:
    """Return the forward/backward tag of a node."""
    return {key: value for key, value in node.meta.items() if key == "partitioner_tag"}


def _is_random(target: Any, args: Any, kwargs: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    arguments = dict(zip(names, args, strict=False)) | dict(kwargs)
    if target is _ATEN.native_dropout.default:
        return arguments["train"] is not False and arguments["p"] != 0
    return not ("dropout_p" in names and not arguments.get("dropout_p", 0.0))


class Recorder(TorchDispatchMode):
    """Records the random numbers drawn inside its context, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if _is_random(func, args, kwargs):
            self.numbers += _copies(result[1] if func is _ATEN.native_dropout.default else result)
        return result


def _copies(result: Any) -> Iterator[torch.Tensor]:
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            yield leaf.detach().clone()
