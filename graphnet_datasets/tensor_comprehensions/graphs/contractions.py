"""Rules for matrix products, convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value, number_text
from .registry import Lowering, argument, constant, dtype_of, rule, shape_of
from .subscripts import Subscript
from .views import padded


def _product(
    lowering: Lowering, node: torch.fx.Node, left: Value, right: Value, batch: int
) -> Value:
    """Sum over the last dimension of `left` and the second-to-last dimension of `right`."""
    block = lowering.block
    left, right = block.stored(left), block.stored(right)
    shape = (*left.shape[:-1], *right.shape[batch + 1 :])
    block.num_contractions += 1
    rows = len(left.shape) - 1

    def element(s: list[Subscript], r: list[Subscript]) -> str:
        first = left.element([*s[:rows], r[0]])
        return f"{first} * {right.element([*s[:batch], r[0], *s[rows:]])}"

    return block.store(
        node.name, shape, dtype_of(node), element, reductions=[left.shape[-1]], operator="+=!"
    )


@rule("aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default")
def product(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower products of matrices and vectors."""
    left, right = (lowering.value(operand) for operand in node.args[:2])
    _require_float(node)
    return _product(lowering, node, left, right, int("bmm" in str(node.target)))


@rule("aten.addmm.default", "aten.baddbmm.default")
def product_with_bias(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower a product with a bias."""
    bias, left, right = (lowering.value(operand) for operand in node.args[:3])
    _require_float(node)
    product_value = _product(lowering, node, left, right, int("baddbmm" in str(node.target)))
    alpha, beta = float(node.kwargs.get("alpha", 1)), float(node.kwargs.get("beta", 1))  # type: ignore[arg-type]
    scale = "" if alpha == 1 else f"{number_text(alpha)} * "
    if beta == 0:
        return Value(
            product_value.shape,
            product_value.dtype,
            lambda s: f"({scale}{product_value.element(s)})",
            1,
        )
    beta_factor = "" if beta == 1 else f"{number_text(beta)} * "
    return Value(
        product_value.shape,
        product_value.dtype,
        lambda s: f"({scale}{product_value.element(s)} + {beta_factor}{bias.at(s)})",
        1 + bias.cost,
    )


def _require_float(node: torch.fx.Node) -> None:
    if not dtype_of(node).startswith("float"):
        raise UnsupportedError("Only products of floats are supported.")


@rule("aten.convolution.default")
def convolution(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower convolutions of any rank with stride, dilation, groups and zero padding."""
    arguments: Any = node.args
    _require_float(node)
    if arguments[6]:
        raise UnsupportedError("Transposed convolutions are not supported.")
    source, weight = (
        lowering.value(arguments[0]),
        lowering.block.stored(lowering.value(arguments[1])),
    )
    shape, block = shape_of(node), lowering.block
    if len(source.shape) != len(shape):
        raise UnsupportedError("Convolutions without a batch dimension are not supported.")
    rank, groups = len(shape) - 2, int(arguments[8])
    stride, padding, dilation = (_repeat(arguments[place], rank) for place in (3, 4, 5))
    source = block.stored(source)
    if any(padding):
        wide = [n + 2 * p for n, p in zip(source.shape[2:], padding, strict=True)]
        around = (*source.shape[:2], *wide)
        zero = constant(0.0)
        source = padded(lowering, f"{node.name}_in", source, around, (0, 0, *padding), zero)
    inner, kernel = weight.shape[1], weight.shape[2:]
    outer = weight.shape[0] // groups
    block.num_contractions += 1

    def element(s: list[Subscript], r: list[Subscript]) -> str:
        group, filter_index, places = s[1], s[2], s[3:]
        steps = [
            place.times(step).plus(offset.times(gap))
            for place, step, offset, gap in zip(places, stride, r[1:], dilation, strict=True)
        ]
        channel = group.times(inner).plus(r[0])
        row = group.times(outer).plus(filter_index)
        first = source.element([s[0], channel, *steps])
        return f"{first} * {weight.element([row, r[0], *r[1:]])}"

    result = block.store(
        node.name,
        (shape[0], groups, outer, *shape[2:]),
        dtype_of(node),
        element,
        reductions=[inner, *kernel],
        operator="+=!",
    ).reshaped(shape)
    if arguments[2] is None:
        return result
    bias = lowering.value(arguments[2])
    return Value(
        shape, result.dtype, lambda s: f"({result.element(s)} + {bias.element(s[1:2])})", 1
    )


def _repeat(values: Sequence[int], rank: int) -> list[int]:
    sizes = [int(value) for value in values]
    return sizes * rank if len(sizes) == 1 else sizes


@rule("aten.max_pool2d_with_indices.default")
def max_pool(lowering: Lowering, node: torch.fx.Node) -> tuple[Value | None, ...]:
    """Lower max pooling; the indices are not computed."""
    shape = tuple(node.meta["val"][0].shape)
    kernel = _repeat(argument(node, 1, "kernel_size"), 2)
    stride = _repeat(argument(node, 2, "stride", []) or kernel, 2)
    padding, dilation = (
        _repeat(argument(node, 3, "padding", [0]), 2),
        _repeat(argument(node, 4, "dilation", [1]), 2),
    )
    source = lowering.block.stored(lowering.value(node.args[0]))
    lowest = constant(float("-inf"))
    result = _windows(
        lowering, node, source, shape, (kernel, stride, padding, dilation), "max=!", lowest
    )
    return result, None


@rule("aten.avg_pool2d.default")
def average_pool(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower average pooling with windows of equal size."""
    kernel = _repeat(argument(node, 1, "kernel_size"), 2)
    stride = _repeat(argument(node, 2, "stride", []) or kernel, 2)
    padding = _repeat(argument(node, 3, "padding", [0]), 2)
    source, shape = lowering.block.stored(lowering.value(node.args[0])), shape_of(node)
    counts_padding = bool(argument(node, 5, "count_include_pad", True))
    fits = all(
        (n - 1) * step + size <= old + 2 * pad
        for n, step, size, old, pad in zip(
            shape[-2:], stride, kernel, source.shape[-2:], padding, strict=True
        )
    )
    if not fits or (any(padding) and not counts_padding):
        raise UnsupportedError("Its windows have different sizes.")
    divisor = float(argument(node, 6, "divisor_override") or math.prod(kernel))
    sums = _windows(
        lowering, node, source, shape, (kernel, stride, padding, [1, 1]), "+=!", constant(0.0)
    )
    return Value(shape, sums.dtype, lambda s: f"({sums.element(s)} / {divisor!r})", 1)


@rule("aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default")
def adaptive_pool(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower adaptive pooling with windows that divide the tensor evenly."""
    source, shape = lowering.block.stored(lowering.value(node.args[0])), shape_of(node)
    rank = 2 if "2d" in str(node.target) else 1
    old, new = source.shape[-rank:], shape[-rank:]
    if any(n % m for n, m in zip(old, new, strict=True)):
        raise UnsupportedError("Its windows have different sizes.")
    kernel = [n // m for n, m in zip(old, new, strict=True)]
    windows = (kernel, kernel, [0] * rank, [1] * rank)
    sums = _windows(lowering, node, source, shape, windows, "+=!", constant(0.0))
    divisor = float(math.prod(kernel))
    return Value(shape, sums.dtype, lambda s: f"({sums.element(s)} / {divisor!r})", 1)


def _windows(
    lowering: Lowering,
    node: torch.fx.Node,
    source: Value,
    shape: Sequence[int],
    windows: tuple[list[int], list[int], list[int], list[int]],
    operator: str,
    filler: Value,
) -> Value:
    """Reduce over windows of the last dimensions."""
    kernel, stride, padding, dilation = windows
    rank = len(kernel)
    lead = len(shape) - rank
    required = [
        (n - 1) * step + (size - 1) * spacing + 1
        for n, step, size, spacing in zip(shape[lead:], stride, kernel, dilation, strict=True)
    ]
    old = source.shape[lead:]
    if any(padding) or any(n > m for n, m in zip(required, old, strict=True)):
        wide = [max(n, m + p) for n, m, p in zip(required, old, padding, strict=True)]
        around = (*source.shape[:lead], *wide)
        before = (*([0] * lead), *padding)
        source = padded(lowering, f"{node.name}_in", source, around, before, filler)

    def element(s: list[Subscript], r: list[Subscript]) -> str:
        places = [
            place.times(step).plus(offset.times(spacing))
            for place, step, offset, spacing in zip(s[lead:], stride, r, dilation, strict=True)
        ]
        return source.element([*s[:lead], *places])

    return lowering.block.store(
        node.name, shape, source.dtype, element, reductions=kernel, operator=operator
    )


@rule(
    "aten.upsample_nearest2d.default", "aten.upsample_nearest2d.vec", "aten.upsample_nearest1d.vec"
)
def upsample(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower nearest-neighbour upsampling by an integer factor."""
    source, shape = lowering.value(node.args[0]), shape_of(node)
    factors = []
    for old, new in zip(source.shape[2:], shape[2:], strict=True):
        if new % old:
            raise UnsupportedError("Its scale factor is not an integer.")
        factors.append(new // old)

    def mapped(s: Subscripts) -> Subscripts:
        return [
            *s[:2],
            *(subscript.over(factor) for subscript, factor in zip(s[2:], factors, strict=True)),
        ]

    view = source.viewed(shape, mapped)
    return Value(shape, view.dtype, view.element, view.cost + 1)


@rule("aten.pixel_shuffle.default")
def pixel_shuffle(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower a pixel shuffle, which spreads channels over a finer grid."""
    source, shape = lowering.value(node.args[0]), shape_of(node)
    factor = int(node.args[1])  # type: ignore[arg-type]

    def mapped(s: Subscripts) -> Subscripts:
        *lead, channel, row, column = s
        inner = row.modulo(factor).times(factor).plus(column.modulo(factor))
        deep = channel.times(factor * factor).plus(inner)
        return [*lead, deep, row.over(factor), column.over(factor)]

    view = source.viewed(shape, mapped)
    return Value(shape, view.dtype, view.element, view.cost + 1)
