"""Rules for reductions, and for operators built on reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value
from .registry import Lowering, argument, dtype_of, rule, shape_of
from .subscripts import Subscript

_REDUCTIONS = {"sum": "+=!", "mean": "+=!", "amax": "max=!", "amin": "min=!", "prod": "*=!"}


def dimensions(node: torch.fx.Node, rank: int, place: int = 1) -> list[int]:
    """Return the dimensions that a node reduces, by default all."""
    argument_value: Any = argument(node, place, "dim")
    if argument_value is None or argument_value == []:
        return list(range(rank))
    return sorted(
        int(dimension) % rank
        for dimension in (
            argument_value if isinstance(argument_value, Sequence) else [argument_value]
        )
    )


def reduced(
    lowering: Lowering,
    name: str,
    source: Value,
    along: Sequence[int],
    operator: str,
    dtype: str,
    element: Any = None,
) -> Value:
    """Reduce a value to a stored tensor of the remaining dimensions.

    Args:
        element: return the source of the reduced expression at subscripts of `source`.
    """
    remaining = [place for place in range(len(source.shape)) if place not in along]
    expression = element or (lambda s: source.as_type(dtype, s))

    def full(outer: list[Subscript], inner: list[Subscript]) -> str:
        subscripts = [Subscript.constant(0)] * len(source.shape)
        for place, subscript in (
            *zip(remaining, outer, strict=True),
            *zip(along, inner, strict=True),
        ):
            subscripts[place] = subscript
        return expression(subscripts)

    return lowering.block.store(
        name,
        [source.shape[place] for place in remaining],
        dtype,
        full,
        reductions=[source.shape[place] for place in along],
        operator=operator,
    )


def spread(value: Value, along: Sequence[int], shape: Sequence[int]) -> Value:
    """Restore reduced dimensions with size 1, for broadcasting."""
    remaining = [place for place in range(len(shape)) if place not in along]
    ones = tuple(1 if place in along else shape[place] for place in range(len(shape)))
    return value.viewed(ones, lambda s: [s[place] for place in remaining])


@rule(
    *("aten.sum.dim_IntList", "aten.sum.default", "aten.mean.dim", "aten.mean.default"),
    *("aten.amax.default", "aten.amin.default", "aten.prod.dim_int", "aten.prod.default"),
)
def reduction(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower sums, means, products, maxima and minima along dimensions."""
    source = lowering.value(node.args[0])
    rank = len(source.shape)
    name = str(node.target).split(".")[1]
    has_dimensions = str(node.target).endswith((".dim", "IntList", "dim_int")) or name[:2] == "am"
    along = dimensions(node, rank) if has_dimensions else list(range(rank))
    dtype, shape = dtype_of(node), shape_of(node)
    if dtype == "bool":
        raise UnsupportedError("Its result is a boolean.")
    source = _whole(lowering, source, along)
    result = reduced(lowering, node.name, source, along, _REDUCTIONS[name], dtype)
    if name in ("amax", "amin") and dtype.startswith("float"):
        result = _with_nan(lowering, node, source, along, result)
    shaped = result.reshaped(shape) if result.shape != shape else result
    if name != "mean":
        return shaped
    count = 1
    for dimension in along:
        count *= source.shape[dimension]
    text = f"{float(count)!r}"
    return Value(shape, dtype, lambda s: f"({shaped.element(s)} / {text})", 1)


def _whole(lowering: Lowering, source: Value, along: Sequence[int]) -> Value:
    """Store an expensive operand, whose elements would otherwise be recomputed."""
    del along
    return lowering.block.stored(source) if source.cost > 30 else source


def _with_nan(
    lowering: Lowering, node: torch.fx.Node, source: Value, along: Sequence[int], result: Value
) -> Value:
    """Return the extreme, or NaN if an element is NaN: `max=!` does not specify NaN handling."""
    source = lowering.block.once(source)
    remaining = [place for place in range(len(source.shape)) if place not in along]

    def is_nan(s: Subscripts) -> str:
        return f"int32({source.element(s)} != {source.element(s)})"

    count = reduced(lowering, f"{node.name}_nan", source, along, "max=!", "int32", is_nan)
    del remaining
    return Value(
        result.shape,
        result.dtype,
        lambda s: f"({count.element(s)} > 0 ? 0.0 * 1e999 : {result.element(s)})",
        3,
    )


@rule("aten.any.dim", "aten.any.dims", "aten.any.default", "aten.all.dim", "aten.all.default")
def any_all(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower tests whether any or all elements are true."""
    source = lowering.value(node.args[0])
    rank = len(source.shape)
    along = list(range(rank)) if "default" in str(node.target) else dimensions(node, rank)
    operator = "max=!" if ".any." in str(node.target) else "min=!"
    count = reduced(
        lowering,
        node.name,
        source,
        along,
        operator,
        "int32",
        lambda s: f"int32({source.as_type('bool', s)})",
    )
    shaped = count.reshaped(shape_of(node))
    return Value(shaped.shape, "bool", lambda s: f"({shaped.element(s)} > 0)", 1)


@rule(
    "aten._softmax.default", "aten.softmax.int", "aten._log_softmax.default", "aten.log_softmax.int"
)
def softmax(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower softmax; subtracting the maximum first avoids overflow."""
    dtype, shape = dtype_of(node), shape_of(node)
    source = lowering.value(node.args[0])
    if source.dtype != dtype or not shape:
        raise UnsupportedError("It converts its operand.")
    source = lowering.block.stored(source)
    along = [int(node.args[1]) % len(shape)]  # type: ignore[arg-type]
    greatest = reduced(lowering, f"{node.name}_max", source, along, "max=!", dtype)
    top = spread(greatest, along, shape)
    is_log = "log" in str(node.target)

    def power(s: Subscripts) -> str:
        return f"exp({source.element(s)} - {top.at(s)})"

    if is_log:
        total = reduced(lowering, f"{node.name}_sum", source, along, "+=!", dtype, power)
        below = spread(total, along, shape)
        return Value(
            shape,
            dtype,
            lambda s: f"({source.element(s)} - {top.at(s)} - log({below.at(s)}))",
            3,
        )
    powers = lowering.block.store(f"{node.name}_exp", shape, dtype, lambda s, _: power(s))
    total = reduced(lowering, f"{node.name}_sum", powers, along, "+=!", dtype)
    below = spread(total, along, shape)
    return Value(shape, dtype, lambda s: f"({powers.element(s)} / {below.at(s)})", 1)


@rule("aten.linalg_vector_norm.default")
def vector_norm(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower the Euclidean norm along dimensions."""
    if float(argument(node, 1, "ord", 2)) != 2:
        raise UnsupportedError("Only the Euclidean norm is supported.")
    source, dtype = lowering.value(node.args[0]), dtype_of(node)
    if not source.dtype.startswith("float") or source.dtype != dtype:
        raise UnsupportedError("It converts its operand.")
    source = lowering.block.once(source)
    along = dimensions(node, len(source.shape), 2)

    def square(s: Subscripts) -> str:
        return f"{source.element(s)} * {source.element(s)}"

    total = reduced(lowering, node.name, source, along, "+=!", dtype, square)
    shaped = total.reshaped(shape_of(node))
    return Value(shaped.shape, dtype, lambda s: f"sqrt({shaped.element(s)})", 1)


@rule("aten.logsumexp.default")
def logsumexp(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower the logarithm of a sum of exponentials."""
    source = lowering.block.stored(lowering.value(node.args[0]))
    dtype = dtype_of(node)
    along = dimensions(node, len(source.shape))
    greatest = reduced(lowering, f"{node.name}_max", source, along, "max=!", dtype)
    top = spread(greatest, along, source.shape)
    total = reduced(
        lowering,
        f"{node.name}_sum",
        source,
        along,
        "+=!",
        dtype,
        lambda s: f"exp({source.element(s)} - {top.at(s)})",
    )
    result = Value(
        total.shape, dtype, lambda s: f"({greatest.element(s)} + log({total.element(s)}))", 2
    )
    return result.reshaped(shape_of(node))


@rule("aten.var.correction", "aten.std.correction", "aten.var_mean.correction")
def variance(lowering: Lowering, node: torch.fx.Node) -> Any:
    """Lower variance and standard deviation in two passes: the mean, then squared deviations."""
    source = lowering.block.stored(lowering.value(node.args[0]))
    dtype, shape = source.dtype, source.shape
    along = dimensions(node, len(shape))
    correction: Any = node.kwargs.get("correction", 1)
    correction = 1 if correction is None else correction
    mean, second = moments(lowering, node.name, source, along, float(correction))
    keep = bool(argument(node, 99, "keepdim", False))
    final = [
        1 if place in along else shape[place]
        for place in range(len(shape))
        if keep or place not in along
    ]
    shaped = second.reshaped(final)
    if "std" in str(node.target):
        return Value(shaped.shape, dtype, lambda s: f"sqrt({shaped.element(s)})", 2)
    return (shaped, mean.reshaped(final)) if "var_mean" in str(node.target) else shaped


def moments(
    lowering: Lowering, name: str, source: Value, along: Sequence[int], correction: float
) -> tuple[Value, Value]:
    """Return the mean and the variance over dimensions, which are removed."""
    dtype, shape = source.dtype, source.shape
    count = 1
    for dimension in along:
        count *= shape[dimension]
    total = reduced(lowering, f"{name}_sum", source, along, "+=!", dtype)
    mean = lowering.block.store(
        f"{name}_mean", total.shape, dtype, lambda s, _: f"{total.element(s)} / {float(count)!r}"
    )
    centre = spread(mean, along, shape)

    def square(s: Subscripts) -> str:
        gap = f"({source.element(s)} - {centre.at(s)})"
        return f"{gap} * {gap}"

    squares = reduced(lowering, f"{name}_squares", source, along, "+=!", dtype, square)
    divisor = repr(max(float(count) - correction, 0.0))
    return mean, Value(squares.shape, dtype, lambda s: f"({squares.element(s)} / {divisor})", 1)
