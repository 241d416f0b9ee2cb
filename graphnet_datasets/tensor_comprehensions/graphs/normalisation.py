"""Rules for normalization operators."""

from __future__ import annotations

import math
from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value, number_text
from .reductions import moments, spread
from .registry import Lowering, rule


@rule("aten.native_layer_norm.default")
def layer_norm(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Lower normalization over the last dimensions."""
    source = lowering.block.stored(lowering.value(node.args[0]))
    arguments: Any = node.args
    along = list(range(len(source.shape) - len(arguments[1]), len(source.shape)))
    normalised, mean, _, scale = _normalised(lowering, node, source, along, float(arguments[4]))
    result = _affine(
        lowering, source, normalised, arguments[2], arguments[3], lambda s: s[along[0] :]
    )
    ones = tuple(1 if place in along else n for place, n in enumerate(source.shape))
    return result, mean.reshaped(ones), scale.reshaped(ones)


@rule("aten.native_group_norm.default")
def group_norm(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Lower normalization over groups of channels."""
    arguments: Any = node.args
    source = lowering.block.stored(lowering.value(arguments[0]))
    groups, epsilon = int(arguments[6]), float(arguments[7])
    batch, channels = source.shape[:2]
    split = (batch, groups, channels // groups, *source.shape[2:])
    grouped = source.reshaped(split)
    along = list(range(2, len(split)))
    normalised, mean, _, scale = _normalised(lowering, node, grouped, along, epsilon)
    whole = normalised.reshaped(source.shape)
    result = _affine(lowering, source, whole, arguments[1], arguments[2], lambda s: s[1:2])
    return result, mean, scale


@rule("aten._native_batch_norm_legit_no_training.default", "aten.native_batch_norm.default")
def batch_norm(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Lower batch normalization with running statistics."""
    arguments: Any = node.args
    source = lowering.value(arguments[0])
    if str(node.target) == "aten.native_batch_norm.default" and arguments[5]:
        raise UnsupportedError("Batch normalization in training mode is not supported here.")
    mean, variance = lowering.value(arguments[3]), lowering.value(arguments[4])
    epsilon = number_text(float(arguments[-1]))

    def element(s: Subscripts) -> str:
        scale = f"rsqrt({variance.element(s[1:2])} + {epsilon})"
        return f"(({source.element(s)} - {mean.element(s[1:2])}) * {scale})"

    normalised = Value(source.shape, source.dtype, element, source.cost + 4)
    result = _affine(lowering, source, normalised, arguments[1], arguments[2], lambda s: s[1:2])
    return result, None, None


@rule("aten._native_batch_norm_legit_functional.default", "aten._native_batch_norm_legit.no_stats")
def batch_norm_in_training(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Lower batch normalization with batch statistics, and update the running statistics."""
    arguments: Any = node.args
    has_running = str(node.target).startswith("aten._native_batch_norm_legit_functional")
    if not arguments[5 if has_running else 3]:
        raise UnsupportedError("It is not in training mode.")
    source = lowering.block.stored(lowering.value(arguments[0]))
    along = [place for place in range(len(source.shape)) if place != 1]
    momentum, epsilon = float(arguments[-2]), float(arguments[-1])
    normalised, mean, variance, scale = _normalised(lowering, node, source, along, epsilon)
    result = _affine(lowering, source, normalised, arguments[1], arguments[2], lambda s: s[1:2])
    if not has_running:
        return result, mean, scale
    count = math.prod(source.shape[place] for place in along)
    unbiased = number_text(count / max(count - 1, 1))
    keep, update = number_text(1 - momentum), number_text(momentum)

    def follow(place: int, new: Value, factor: str) -> Value:
        old = lowering.value(arguments[place])

        def element(s: Subscripts) -> str:
            return f"({keep} * {old.element(s)} + {update} * ({factor} * {new.element(s)}))"

        return Value(old.shape, old.dtype, element, old.cost + new.cost + 4)

    return result, mean, scale, follow(3, mean, "1.0"), follow(4, variance, unbiased)


def _normalised(
    lowering: Lowering, node: torch.fx.Node, source: Value, along: list[int], epsilon: float
) -> tuple[Value, Value, Value, Value]:
    """Return the normalised values, the mean, the variance and the reciprocal standard
    deviation.
    """
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
    lowering: Lowering, source: Value, normalised: Value, weight: Any, bias: Any, channel: Any
) -> Value:
    """Multiply by a weight and add a bias, both optional."""
    for argument, sign in ((weight, "*"), (bias, "+")):
        if argument is None:
            continue
        operand, inner = lowering.value(argument), normalised

        def element(s: Subscripts, o: Value = operand, i: Value = inner, op: str = sign) -> str:
            return f"({i.element(s)} {op} {o.element(channel(s))})"

        normalised = Value(source.shape, source.dtype, element, normalised.cost + 1)
    return normalised
