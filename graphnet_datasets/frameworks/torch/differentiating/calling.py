"""A sample as a function of its tensors, whose outputs share no memory."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from ....errors import GradientError
from ....sample import Sample
from ..building.run_checks import NAME as CHECKS_NAME
from ..walking.recurrent import kind_of, read_call

MAX_RECURRENT_STEPS = 5000
"""Largest number of steps of a recurrent layer that autograd may unroll."""


class Call(torch.nn.Module):
    """Calls a materialized sample with its tensors, in order, and numbers from the capture.

    It returns the tensors among the outputs. Outputs that share memory with an input or with each
    other are copied. Inputs that need gradients are copied before the graph writes to them, as
    autograd requires.
    """

    def __init__(
        self, graph: torch.fx.GraphModule, sample: Sample, inputs: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._graph = (_without_checks(graph),)  # a tuple keeps it from becoming a submodule
        self.positions = tuple(
            position
            for position, value in enumerate(inputs.values())
            if isinstance(value, torch.Tensor)
        )
        self._numbers = {
            name: value for name, value in inputs.items() if not isinstance(value, torch.Tensor)
        }
        self._names = tuple(sample.input_names[position] for position in self.positions)
        self._copied: frozenset[int] = frozenset()
        self._aliases: frozenset[int] = frozenset()

    def prepare(self, mode: FakeTensorMode | None, tensors: Sequence[torch.Tensor]) -> None:
        """Run on fake or real tensors to find which tensors are written to or share memory."""
        with mode or contextlib.nullcontext(), torch.no_grad():
            fakes = [
                mode.from_tensor(tensor.detach(), static_shapes=True)
                if mode
                else tensor.detach().clone()
                for tensor in tensors
            ]
            versions = [fake._version for fake in fakes]
            outputs = self(*fakes)
        self._copied = frozenset(
            place
            for place, (fake, version) in enumerate(zip(fakes, versions, strict=True))
            if fake._version != version and tensors[place].requires_grad
        )
        seen = {fake.untyped_storage()._cdata for fake in fakes}
        aliases = set()
        for place, output in enumerate(outputs):
            storage = output.untyped_storage()._cdata
            if storage in seen:
                aliases.add(place)
            seen.add(storage)
        self._aliases = frozenset(aliases)

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Run the graph."""
        arguments = dict(self._numbers)
        for place, (name, tensor) in enumerate(zip(self._names, tensors, strict=True)):
            arguments[name] = tensor.clone() if place in self._copied else tensor
        with _LimitRecurrence():
            leaves = pytree.tree_leaves(self._graph[0](**arguments))
        outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        return [
            output.clone() if place in self._aliases else output
            for place, output in enumerate(outputs)
        ]


class _LimitRecurrence(TorchFunctionMode):
    """Raises a `GradientError` for recurrent layers with too many steps.

    A joint graph contains the operators of every step, and tracing a step takes a few tenths of a
    second. A sequence of a few megabytes can have millions of steps.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = f"torch.{getattr(function, '__name__', '')}"
        if isinstance(function, torch._ops.OpOverload):
            name = f"torch.ops.{function}"
        if kind_of(name) is not None:
            layer = read_call(name, args, kwargs)
            steps = layer.steps * layer.num_layers * (1 + layer.bidirectional)
            if steps > MAX_RECURRENT_STEPS:
                raise GradientError(
                    f"The gradients of `{name}` unroll {steps:,} steps of its sequences, layers "
                    f"and directions; at most {MAX_RECURRENT_STEPS:,} are supported. Make the "
                    "sequence shorter with `at_smaller_sizes`."
                )
        return function(*args, **kwargs)


def _without_checks(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return the module without its run-time size checks."""
    calls = list(_calls_of_checks(graph))
    if not calls:
        return graph
    graph = copy.copy(graph)
    graph.graph = copy.deepcopy(graph.graph)
    for node in list(_calls_of_checks(graph)):
        graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _calls_of_checks(graph: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    return (
        node
        for node in graph.graph.nodes
        if node.op == "call_module" and node.target == CHECKS_NAME
    )


def places_of(positions: Sequence[int], chosen: Collection[int]) -> tuple[int, ...]:
    """Return the indices in `positions` of the chosen positions.

    >>> places_of((0, 2, 3), {2, 3})
    (1, 2)
    """
    return tuple(place for place, position in enumerate(positions) if position in chosen)
