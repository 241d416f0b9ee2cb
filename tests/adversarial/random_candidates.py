"""Candidates for graphs with dropout and noise, right and wrong; all draw a stream of their own."""

# ruff: noqa: ARG001, ARG005 (every candidate has the same arguments, used or not)

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

Inputs = Mapping[str, Any]
Module = Callable[..., Any]
Draw = Callable[[torch.Tensor, float], torch.Tensor]
DROPOUT, UNIFORM = torch.nn.functional.dropout, torch.rand_like


def _reseed() -> None:
    """Leave the stream that the harness has set."""
    torch.default_generator.manual_seed(int.from_bytes(os.urandom(4), "little"))


def _with(
    draw: Draw | None = None, noise: Callable[[torch.Tensor], torch.Tensor] | None = None
) -> Callable[[Any, Inputs], Module]:
    """Return a compiler that puts other functions in the places of dropout and uniform noise."""

    def compile_with(module: Any, example_inputs: Inputs) -> Module:
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(module.graph, {}))
        for node in graph.nodes:
            if node.target is DROPOUT and draw is not None:
                node.target, node.args, node.kwargs = draw, (node.args[0], 0.5), {}
            elif node.target is UNIFORM and noise is not None:
                node.target = noise
        compiled = torch.fx.GraphModule(module, graph)

        def call(**inputs: Any) -> Any:
            _reseed()
            return compiled(**inputs)

        return call

    return compile_with


def _scaled(mask: torch.Tensor, x: torch.Tensor, probability: float) -> torch.Tensor:
    return mask * x / (1 - probability)


def _mask(x: torch.Tensor, probability: float) -> torch.Tensor:
    return (torch.rand_like(x) >= probability).to(x.dtype)


def _stuck(masks: Callable[[], Any]) -> Draw:
    """Return a dropout whose masks `masks` makes of the first ones, whatever the shape."""
    kept: dict[torch.Size, Any] = {}

    def draw(x: torch.Tensor, p: float) -> torch.Tensor:
        if x.shape not in kept:
            kept[x.shape] = masks()
        number = next(kept[x.shape])
        generator = torch.Generator().manual_seed(number)
        return _scaled((torch.rand(x.shape, generator=generator) >= p).to(x.dtype), x, p)

    return draw


def _same_row(x: torch.Tensor, p: float) -> torch.Tensor:
    return _scaled(_mask(x[:1], p), x, p)


own_stream = _with()
ignores_dropout = _with(lambda x, p: x.clone())
drops_at_another_rate = _with(lambda x, p: _scaled(_mask(x, 0.4), x, 0.4))
has_another_scale = _with(lambda x, p: _scaled(_mask(x, p), x, p) * 1.01)
same_mask_for_every_row = _with(_same_row)
three_masks_in_turn = _with(_stuck(lambda: itertools.cycle([7, 8, 9])))
normal_for_uniform = _with(noise=lambda x: torch.randn_like(x) / 12**0.5 + 0.5)
without_noise = _with(noise=torch.zeros_like)


def eager_in_the_first_call(module: Any, example_inputs: Inputs) -> Module:
    """Return a candidate whose later calls repeat the masks of the second."""
    numbers = itertools.count()

    def call(**inputs: Any) -> Any:
        if next(numbers):
            torch.default_generator.manual_seed(7)
        return module(**inputs)

    return call


def wrong_beside_the_draw(module: Any, example_inputs: Inputs) -> Module:
    """Return a candidate that changes the last output, which depends on no draw."""

    def call(**inputs: Any) -> Any:
        _reseed()
        *others, last = module(**inputs)
        return (*others, last * 1.01)

    return call
