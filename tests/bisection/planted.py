"""Compilers that interpret a graph and get one operator wrong under one condition."""

# ruff: noqa: ARG001 (every rule has the same arguments, used or not)

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

Module = torch.fx.GraphModule
Inputs = Mapping[str, Any]
Compiled = Callable[..., Any]
Rule = Callable[[torch.fx.Node, tuple[Any, ...], Any], Any]
"""Takes a node, its arguments and what it gives, and returns what is given instead."""


def name_of(node: Any) -> str:
    """Return what the operator of a node is called, "" for what is none."""
    if not isinstance(node, torch.fx.Node) or node.op in ("placeholder", "get_attr", "output"):
        return ""
    return str(getattr(node.target, "__name__", node.target))


def operand(node: torch.fx.Node, place: int = 0) -> Any:
    """Return the node whose result stands among the arguments of another one."""
    return node.args[place] if len(node.args) > place else None


def _is(node: Any, *names: str) -> bool:
    return name_of(node) in names


def _interpreting(module: Module, rule: Rule) -> Compiled:
    class Interpreter(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            given = super().run_node(n)
            if not name_of(n):
                return given
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return rule(n, (*args, *kwargs.values()), given)

    return lambda **inputs: Interpreter(module).run(*inputs.values())


def _planted(rule: Rule) -> Callable[[Module, Inputs], Compiled]:
    def compile_planted(module: Module, example_inputs: Inputs) -> Compiled:
        del example_inputs
        return _interpreting(module, rule)

    return compile_planted


def _refusing(refuse: Callable[[Module], None]) -> Callable[[Module, Inputs], Compiled]:
    def compile_refusing(module: Module, example_inputs: Inputs) -> Compiled:
        del example_inputs
        refuse(module)
        return lambda **inputs: module(**inputs)

    return compile_refusing


def _gelu_by_tanh(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Take the coarse approximation by a sigmoid for the gelu."""
    return args[0] * torch.sigmoid(1.702 * args[0]) if _is(node, "gelu") else given


def _odd_softmax(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Forget the last element of an odd axis."""
    if _is(node, "softmax", "log_softmax") and given.shape[-1] % 2 == 1:
        return torch.cat([given[..., :-1], torch.zeros_like(given[..., -1:])], -1)
    return given


def _grouped_convolution(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Give the groups of a convolution in the wrong order."""
    is_grouped = _is(node, "conv1d", "conv2d") and len(args) > 6 and args[6] > 1
    return given.roll(1, 1) if is_grouped else given


def _broadcast_add(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Add an operand that is to be broadcast at the wrong place."""
    if not _is(node, "add") or not all(isinstance(each, torch.Tensor) for each in args[:2]):
        return given
    return given.roll(1, -1) if args[0].shape != args[1].shape else given


def _half_norm(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Change the sign, of float16 alone."""
    if _is(node, "layer_norm") and given.dtype is torch.float16:
        return -given
    return given


def _relu_after_add(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Fuse the activation into the sum before it, wrongly."""
    is_fused = _is(node, "relu") and _is(operand(node), "add", "iadd")
    return args[0].abs() if is_fused else given


def _linear_gelu_linear(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Fuse a whole block, and forget the activation's tail."""
    before = operand(node)
    is_block = _is(node, "linear") and _is(before, "gelu") and _is(operand(before), "linear")
    return given * 1.5 if is_block else given


def _crashing_pool(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    if _is(node, "max_pool2d", "boolean_dispatch"):
        ctypes.string_at(0)
    return given


def _hanging_tanh(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    if _is(node, "tanh"):
        time.sleep(600)
    return given


def _nan_of_softplus(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Overflow where the argument is large, as `log(1 + exp(x))` does."""
    if _is(node, "softplus") and float(args[0].max()) > 0:
        return torch.where(args[0] >= args[0].max(), torch.nan, given)
    return given


def _slow_transposed(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    if _is(node, "conv_transpose1d"):
        time.sleep(0.02)
    return given


def _refuse_einsum(module: Module) -> None:
    for node in module.graph.nodes:
        if _is(node, "einsum"):
            raise NotImplementedError(f"no lowering for einsum in the node {node.name}")


def _crash_on_group_norm(module: Module) -> None:
    if any(_is(node, "group_norm") for node in module.graph.nodes):
        os.abort()


def _failing_index_add(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    if _is(node, "index_add"):
        raise IndexError("the kernel of index_add reads beyond its table")
    return given


def _wide_result(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    return given.double() if _is(node, "log_softmax") else given


def _kept_axis(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    return given.unsqueeze(0) if _is(node, "sigmoid") else given


def _strided_product(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Take a transposed operand for one that is not."""
    if not _is(node, "bmm", "matmul"):
        return given
    is_strided = any(not each.is_contiguous() for each in args[:2])
    return given.flip(-1) if is_strided else given


def _lost_scatter(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Lose what is added to a place a second time."""
    if not _is(node, "scatter_add_"):
        return given
    return given.clamp_(max=float(given.float().mean()))


def _wide_cat(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Swap the last two of more than two tensors."""
    if not _is(node, "cat") or len(args[0]) < 3:
        return given
    axis = args[1] if len(args) > 1 else 0
    return torch.cat([*args[0][:-2], args[0][-1], args[0][-2]], axis)


def _high_rows(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    """Read rows of a table by the low bits of their numbers."""
    if not _is(node, "embedding"):
        return given
    return torch.where((args[0] > 127).unsqueeze(-1), torch.zeros_like(given), given)


def _strided_convolution(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
    if not _is(node, "conv2d") or len(args) < 4:
        return given
    return given * 0.5 if 2 in tuple(args[3]) else given


gelu_by_tanh = _planted(_gelu_by_tanh)
odd_softmax = _planted(_odd_softmax)
grouped_convolution = _planted(_grouped_convolution)
broadcast_add = _planted(_broadcast_add)
half_norm = _planted(_half_norm)
relu_after_add = _planted(_relu_after_add)
linear_gelu_linear = _planted(_linear_gelu_linear)
crashing_pool = _planted(_crashing_pool)
hanging_tanh = _planted(_hanging_tanh)
nan_of_softplus = _planted(_nan_of_softplus)
slow_transposed = _planted(_slow_transposed)
refused_einsum = _refusing(_refuse_einsum)
crash_on_group_norm = _refusing(_crash_on_group_norm)
failing_index_add = _planted(_failing_index_add)
wide_result = _planted(_wide_result)
kept_axis = _planted(_kept_axis)
strided_product = _planted(_strided_product)
lost_scatter = _planted(_lost_scatter)
wide_cat = _planted(_wide_cat)
high_rows = _planted(_high_rows)
strided_convolution = _planted(_strided_convolution)


def _redraw(rate: float) -> Rule:
    """Return a rule that draws each dropout once more, so with other numbers than eager."""

    def redraw(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
        if not _is(node, "dropout"):
            return given
        return torch.nn.functional.dropout(args[0], rate, training=True)

    return redraw


other_stream, drops_less = _planted(_redraw(0.5)), _planted(_redraw(0.4))


def _sort_otherwise(order: Callable[[torch.Tensor], torch.Tensor]) -> Rule:
    """Return a rule that replaces the positions that `argsort` returns."""

    def rule(node: torch.fx.Node, args: tuple[Any, ...], given: Any) -> Any:
        return order(args[0]) if _is(node, "argsort") else given

    return rule


ties_backwards = _planted(
    _sort_otherwise(
        lambda keys: keys.shape[-1] - 1 - torch.argsort(keys.flip(-1), dim=-1, stable=True)
    )
)
sorts_backwards = _planted(_sort_otherwise(lambda keys: torch.argsort(keys, descending=True)))
