"""Rules of normalisations."""

from __future__ import annotations

import math
from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value, number_text
from .reductions import moments, spread
from .registry import Lowering, rule


@rule("aten.native_layer_norm.default")
def layer_norm(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Over the last dimensions."""
    source = lowering.block.stored(lowering.value(node.args[0]))
    given: Any = node.args
    along = list(range(len(source.shape) - len(given[1]), len(source.shape)))
    made, mean, _, scale = _normalised(lowering, node, source, along, float(given[4]))
    result = _affine(lowering, source, made, given[2], given[3], lambda s: s[along[0] :])
    ones = tuple(1 if place in along else n for place, n in enumerate(source.shape))
    return result, mean.reshaped(ones), scale.reshaped(ones)


@rule("aten.native_group_norm.default")
def group_norm(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Over groups of channels."""
    given: Any = node.args
    source = lowering.block.stored(lowering.value(given[0]))
    groups, epsilon = int(given[6]), float(given[7])
    batch, channels = source.shape[:2]
    split = (batch, groups, channels // groups, *source.shape[2:])
    grouped = source.reshaped(split)
    along = list(range(2, len(split)))
    made, mean, _, scale = _normalised(lowering, node, grouped, along, epsilon)
    whole = made.reshaped(source.shape)
    result = _affine(lowering, source, whole, given[1], given[2], lambda s: s[1:2])
    return result, mean, scale


@rule("aten._native_batch_norm_legit_no_training.default", "aten.native_batch_norm.default")
def batch_norm(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """With the statistics that training left."""
    given: Any = node.args
    source = lowering.value(given[0])
    if str(node.target) == "aten.native_batch_norm.default" and given[5]:
        raise UnsupportedError("it computes its statistics")
    mean, variance = lowering.value(given[3]), lowering.value(given[4])
    epsilon = number_text(float(given[-1]))

    def element(s: Subscripts) -> str:
        scale = f"rsqrt({variance.element(s[1:2])} + {epsilon})"
        return f"(({source.element(s)} - {mean.element(s[1:2])}) * {scale})"

    made = Value(source.shape, source.dtype, element, source.cost + 4)
    result = _affine(lowering, source, made, given[1], given[2], lambda s: s[1:2])
    return result, None, None


@rule("aten._native_batch_norm_legit_functional.default", "aten._native_batch_norm_legit.no_stats")
def batch_norm_in_training(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """With the statistics of the batch, which running ones follow by the momentum."""
    given: Any = node.args
    has_running = str(node.target).startswith("aten._native_batch_norm_legit_functional")
    if not given[5 if has_running else 3]:
        raise UnsupportedError("it is not in training mode")
    source = lowering.block.stored(lowering.value(given[0]))
    along = [place for place in range(len(source.shape)) if place != 1]
    momentum, epsilon = float(given[-2]), float(given[-1])
    made, mean, variance, scale = _normalised(lowering, node, source, along, epsilon)
    result = _affine(lowering, source, made, given[1], given[2], lambda s: s[1:2])
    if not has_running:
        return result, mean, scale
    count = math.prod(source.shape[place] for place in along)
    unbiased = number_text(count / max(count - 1, 1))
    kept, part = number_text(1 - momentum), number_text(momentum)

    def follow(place: int, new: Value, factor: str) -> Value:
        old = lowering.value(given[place])

        def element(s: Subscripts) -> str:
            return f"({kept} * {old.element(s)} + {part} * ({factor} * {new.element(s)}))"

        return Value(old.shape, old.dtype, element, old.cost + new.cost + 4)

    return result, mean, scale, follow(3, mean, "1.0"), follow(4, variance, unbiased)


def _normalised(
    lowering: Lowering, node: torch.fx.Node, source: Value, along: list[int], epsilon: float
) -> tuple[Value, Value, Value, Value]:
    """Return the normalised values, the mean, the variance and its reciprocal root."""
    mean, variance = moments(lowering, node.name, source, along, 0.0)
    scale = lowering.block.store(
        f"{node.name}_scale",
        variance.shape,
        source.dtype,
        lambda s, _: f"rsqrt({variance.element(s)} + {number_text(epsilon)})",
    )
    centre, factor = spread(mean, along, source.shape), spread(scale, along, source.shape)

    def element(s: Subscripts) -> str:
        return f"(({source.element(s)} - {centre.at(s)}) * {factor.at(s)})"

    return Value(source.shape, source.dtype, element, 2), mean, variance, scale


def _affine(
    lowering: Lowering, source: Value, made: Value, weight: Any, bias: Any, channel: Any
) -> Value:
    """Return a normalised value times weight plus bias, either of which may be missing."""
    for argument, sign in ((weight, "*"), (bias, "+")):
        if argument is None:
            continue
        operand, inner = lowering.value(argument), made

        def element(s: Subscripts, o: Value = operand, i: Value = inner, op: str = sign) -> str:
            return f"({i.element(s)} {op} {o.element(channel(s))})"

        made = Value(source.shape, source.dtype, element, made.cost + 1)
    return made
