"""Estimated memory of Paddle calls whose result size depends on operand values.

Paddle infers shapes from literals before anything runs. Sizes that come from tensors (the end of a
range, a number of classes, a shape) are known only when the operator is called, and are checked
then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import paddle

from ...errors import MaterializeError, MemoryLimitError
from ...operators import OperatorNames
from .argument_kinds import MAX_INTEGER, is_tensor
from .operators import CORE

BROADCASTING = OperatorNames("paddle_broadcasts")

RANGES = frozenset({f"{CORE}arange", f"{CORE}linspace"})
"""Core operators whose first argument is a number that affects the result size."""


def check_size(
    name: str, args: Sequence[Any], limit_bytes: int, keywords: Mapping[str, Any] | None = None
) -> None:
    """Raise if the result of a call would exceed `limit_bytes`, at 4 or more bytes per element.

    Raises:
        MemoryLimitError: the result would exceed the limit.
        MaterializeError: the size is NaN.
    """
    estimate = _ELEMENTS.get(name) or _GROWING.get(name)
    if estimate is None:
        return
    num = estimate(_range_arguments(args, keywords or {}) if name == "paddle.arange" else args)
    if num is None:
        return
    if not num == num:
        raise MaterializeError("The size of the result is NaN.")
    if 4 * num > limit_bytes or num > MAX_INTEGER:
        raise MemoryLimitError(
            f"The result has about {num:.3g} elements, more than the limit of "
            f"{limit_bytes / 1e9:,.3f} GB or paddle's 32-bit kernels allow. Raise "
            "`memory_limit_bytes`, or skip the sample."
        )


def has_size(name: str) -> bool:
    """Return whether the result size of an operator may depend on operand values."""
    return name in _ELEMENTS


def number_of(operand: Any) -> float | None:
    """Return the value of a number or of a one-element tensor, or None for anything else."""
    if isinstance(operand, bool | int | float):
        return operand
    if isinstance(operand, paddle.Tensor) and operand.size == 1:
        return float(operand.astype("float64").reshape([1]).numpy()[0])
    return None


def _numbers(operand: Any) -> list[float] | None:
    if isinstance(operand, paddle.Tensor):
        if operand.size > 16:
            return None
        return [float(element) for element in operand.astype("float64").reshape([-1]).numpy()]
    if isinstance(operand, list | tuple):
        numbers = [number for item in operand if (number := number_of(item)) is not None]
        return numbers if len(numbers) == len(operand) else None
    number = number_of(operand)
    return None if number is None else [number]


def _size(tensor: Any) -> int:
    return math.prod(max(1, size) for size in tensor.shape)


_LARGEST_EXACT = 2**53


def _range(args: Sequence[Any]) -> float | None:
    operands = [number_of(operand) for operand in args[:3]]
    if len(operands) < 3 or None in operands:
        return None
    start, end, step = (operand for operand in operands if operand is not None)
    if step == 0 or not all(map(math.isfinite, (start, end, step))):
        return math.nan
    if max(abs(start), abs(end), abs(step)) > _LARGEST_EXACT:
        return math.inf  # larger integers overflow in the kernel
    return max(0.0, (end - start) / step)


def _range_arguments(args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return start, end and step of a `paddle.arange` call; a single argument is the end."""
    arguments = dict(zip(("start", "end", "step"), args, strict=False)) | dict(keywords)
    start, end, step = (arguments.get(name) for name in ("start", "end", "step"))
    start, step = (0 if start is None else start), (1 if step is None else step)
    return (0, start, step) if end is None else (start, end, step)


def _count(args: Sequence[Any]) -> float | None:
    return number_of(args[2])


def _classes(args: Sequence[Any]) -> float | None:
    number = number_of(args[1])
    return None if number is None else _size(args[0]) * max(0.0, number)


def _square(args: Sequence[Any]) -> float | None:
    return abs(args[0]) * abs(args[1] if args[1] != -1 else args[0])


def _shape_at(position: int) -> Callable[[Sequence[Any]], float | None]:
    def elements(args: Sequence[Any]) -> float | None:
        sizes = _numbers(args[position])
        return None if sizes is None else math.prod(max(1.0, size) for size in sizes)

    return elements


def _tiled(args: Sequence[Any]) -> float | None:
    times = _numbers(args[1])
    return (
        None if times is None else _size(args[0]) * math.prod(max(1.0, factor) for factor in times)
    )


def _padded(args: Sequence[Any]) -> float | None:
    paddings = _numbers(args[1])
    if paddings is None:
        return None
    return _size(args[0]) * math.prod(1.0 + max(0.0, padding) for padding in paddings)


def _interpolated(args: Sequence[Any]) -> float | None:
    images = args[0]
    sizes = (
        _numbers(args[1]) if args[1] is not None else [entry for entry in args[5:8] if entry > 0]
    )
    if args[2]:
        sizes = [number for entry in args[2] if (number := number_of(entry)) is not None]
    scales = _numbers(args[3]) if args[3] is not None else _numbers(args[8])
    channels = math.prod(max(1, size) for size in images.shape[:2])
    largest = channels * math.prod(max(1.0, size) for size in sizes or [])
    scaled = [max(1.0, abs(entry)) for entry in scales or []]
    rank = len(images.shape) - 2
    if scaled:
        factor = scaled[0] ** rank if len(scaled) == 1 else math.prod(scaled)
        largest = max(largest, _size(images) * factor)
    return largest


def _bins(args: Sequence[Any]) -> float | None:
    if not isinstance(args[0], paddle.Tensor) or not args[0].size:
        return number_of(args[2])
    return max(float(args[0].max().astype("float64")) + 1, number_of(args[2]) or 0)


def _repeated(args: Sequence[Any]) -> float | None:
    return _size(args[0]) * max(0, args[1])


def _crossed(args: Sequence[Any]) -> float | None:
    return len(args[0]) * math.prod(map(_size, args[0]))


def _regions(args: Sequence[Any]) -> float | None:
    return _size(args[1]) * math.prod(args[0].shape[1:2]) * args[3] * args[4]


def _broadcast(args: Sequence[Any]) -> float | None:
    shapes = [arg.shape for arg in args if is_tensor(arg)]
    return math.prod(map(max, itertools.zip_longest(*map(reversed, shapes), fillvalue=1)))


def _multiplied(args: Sequence[Any]) -> float | None:
    left, right = (list(arg.shape) for arg in args[:2])
    if min(len(left), len(right)) < 2:
        return max(_size(args[0]), _size(args[1]))
    columns = right[-2] if len(args) > 3 and args[3] else right[-1]
    rows = left[-1] if len(args) > 2 and args[2] else left[-2]
    return math.prod(max(1, size) for size in (*max(left, right, key=len)[:-2], rows, columns))


_GROWING: Mapping[str, Callable[[Sequence[Any]], float | None]] = {
    **dict.fromkeys((f"{CORE}{name}" for name in BROADCASTING), _broadcast),
    **dict.fromkeys(
        (
            f"operator.{name}"
            for name in [
                "add",
                "sub",
                "mul",
                "truediv",
                "floordiv",
                "mod",
                "lt",
                "le",
                "gt",
                "ge",
                "eq",
                "ne",
            ]
        ),
        _broadcast,
    ),
    f"{CORE}matmul": _multiplied,
    "operator.matmul": _multiplied,
    f"{CORE}repeat_interleave": _repeated,
    f"{CORE}meshgrid": _crossed,
    f"{CORE}roi_align": _regions,
}
"""Operators whose result can be larger than their inputs, with estimates from shapes and
literals."""

_ELEMENTS: Mapping[str, Callable[[Sequence[Any]], float | None]] = {
    f"{CORE}arange": _range,
    "paddle.arange": _range,
    f"{CORE}linspace": _count,
    f"{CORE}one_hot": _classes,
    f"{CORE}eye": _square,
    f"{CORE}full": _shape_at(0),
    f"{CORE}uniform": _shape_at(0),
    f"{CORE}gaussian": _shape_at(0),
    f"{CORE}randint": _shape_at(2),
    f"{CORE}randperm": lambda args: number_of(args[0]),
    f"{CORE}bincount": _bins,
    f"{CORE}full_with_tensor": _shape_at(1),
    f"{CORE}expand": _shape_at(1),
    f"{CORE}tile": _tiled,
    f"{CORE}pad": _padded,
    f"{CORE}pad3d": _padded,
    **{
        f"{CORE}{name}_interp": _interpolated
        for name in ("bicubic", "bilinear", "linear", "nearest", "trilinear")
    },
}
