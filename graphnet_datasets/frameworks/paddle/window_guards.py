"""Argument checks for Paddle operators with sliding windows or padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MaterializeError
from .argument_kinds import shape_of
from .operators import CORE

MAX_PADDING = 2**20


def _check_factor(args: Sequence[Any]) -> None:
    if not 0 < args[1] <= 2**15:
        raise MaterializeError(f"Expected a factor in [1, {2**15}], got {args[1]}.")


def _check_paddings(args: Sequence[Any]) -> None:
    if len(args[1]) != 6 or min(args[1]) < 0:
        raise MaterializeError(f"Expected 6 non-negative paddings, got {list(args[1])}.")
    if args[4] not in ("NCDHW", "NDHWC"):
        raise MaterializeError(f"Expected the layout NCDHW or NDHWC, got {args[4][:40]!r}.")
    shape = shape_of(args[0])
    if shape is None or args[2] == "constant":
        return
    if len(shape) != 5 or 0 in shape:
        raise MaterializeError(
            f"Expected a non-empty 5-D tensor for the mode {args[2]!r}, got shape {list(shape)}."
        )
    sizes = shape[1:4] if args[4] == "NDHWC" else shape[2:]
    for at, size in enumerate(reversed(sizes)):
        limit = {"reflect": size - 1, "circular": size}.get(args[2], MAX_PADDING)
        if max(args[1][2 * at : 2 * at + 2]) > limit:
            raise MaterializeError(
                f"Expected paddings of at most {limit} for an axis of {size} in the mode "
                f"{args[2]!r}, got {list(args[1])}."
            )


def _check_window(args: Sequence[Any]) -> None:
    numbers = [number for arg in args[1:] if isinstance(arg, (list, tuple)) for number in arg]
    if any(type(number) is int and abs(number) > MAX_PADDING for number in numbers):
        raise MaterializeError(
            f"Expected window sizes, strides, paddings and dilations of at most {MAX_PADDING}, got "
            f"{max(map(abs, numbers))}."
        )


def _check_pool(args: Sequence[Any]) -> None:
    _check_window(args)
    _check_not_negative(args[3])


def _check_not_negative(paddings: Sequence[int]) -> None:
    if paddings and min(paddings) < 0:
        raise MaterializeError(f"Expected non-negative paddings, got {list(paddings)}.")


def _check_convolution(args: Sequence[Any]) -> None:
    _check_window(args)
    images, weights, _, paddings, algorithm = args[:5]
    _check_not_negative(paddings)
    shape, sizes = shape_of(images), shape_of(weights)
    if shape is None or sizes is None or algorithm == "SAME":
        return
    rank = len(shape) - 2
    is_last = _is_last(args)
    if rank not in (1, 2, 3) or len(sizes) != len(shape) or 0 in sizes or 0 in shape[1:]:
        raise MaterializeError(
            "Expected non-empty images and weights of the same rank, got shapes "
            f"{list(shape)} and {list(sizes)}."
        )
    dilations = next(arg for arg in args[5:] if isinstance(arg, (list, tuple)))
    padded = _both_sides(paddings, rank) if algorithm == "EXPLICIT" else [0] * rank
    if len(padded) != rank:
        raise MaterializeError(f"Expected {rank} or {2 * rank} paddings, got {list(paddings)}.")
    images_at, steps = shape[1:-1] if is_last else shape[2:], [*dilations, *dilations, *dilations]
    for size, width, step, more in zip(images_at, sizes[2:], steps, padded, strict=False):
        if size + more < step * (width - 1) + 1:
            raise MaterializeError(
                f"A window of {width} with dilation {step} exceeds an axis of {size} that is "
                f"padded by {more}."
            )


def _check_transposed(args: Sequence[Any]) -> None:
    _check_window(args)
    images, weights, strides, paddings = args[:4]
    _check_not_negative(paddings)
    shape, sizes = shape_of(images), shape_of(weights)
    if shape is None or sizes is None or args[6] == "SAME":
        return
    rank = len(shape) - 2
    if rank not in (2, 3) or len(sizes) != len(shape) or 0 in sizes or 0 in shape[1:]:
        raise MaterializeError(
            "Expected non-empty images and weights of the same rank, got shapes "
            f"{list(shape)} and {list(sizes)}."
        )
    padded = _both_sides(paddings, rank) if args[6] == "EXPLICIT" else [0] * rank
    if len(padded) != rank or not len(strides) == len(args[8]) == rank:
        raise MaterializeError(
            f"Expected {rank} strides and dilations and {rank} or {2 * rank} paddings, got "
            f"{list(strides)}, {list(args[8])} and {list(paddings)}."
        )
    images_at = shape[1:-1] if _is_last(args) else shape[2:]
    for size, width, stride, step, less in zip(
        images_at, sizes[2:], strides, args[8], padded, strict=True
    ):
        if (size - 1) * stride + step * (width - 1) + 1 - less < 1:
            raise MaterializeError(
                f"The paddings {list(paddings)} remove all elements of an axis of {size}."
            )


def _check_depthwise(args: Sequence[Any]) -> None:
    _check_convolution(args)
    shape, sizes = shape_of(args[0]), shape_of(args[1])
    if shape and sizes and (sizes[1] != 1 or sizes[0] % (shape[-1 if _is_last(args) else 1])):
        raise MaterializeError(
            "Expected weights of one input channel and a multiple of the images' channels, got "
            f"shapes {list(sizes)} and {list(shape)}."
        )


def _is_last(args: Sequence[Any]) -> bool:
    return args[-1] in ("NHWC", "NDHWC")


def _both_sides(paddings: Sequence[int], rank: int) -> list[int]:
    if len(paddings) == 2 * rank:
        return [paddings[2 * at] + paddings[2 * at + 1] for at in range(rank)]
    return [2 * padding for padding in paddings]


def _check_sides(args: Sequence[Any]) -> None:
    shape, paddings = shape_of(args[0]), args[1]
    if not isinstance(paddings, (list, tuple)) or shape is None:
        return
    if not shape or len(paddings) != 2 * len(shape) or min(paddings) < 0:
        raise MaterializeError(
            f"Expected {2 * len(shape)} non-negative paddings for shape {list(shape)}, got "
            f"{list(paddings)}."
        )


CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}pixel_shuffle": _check_factor,
    f"{CORE}pixel_unshuffle": _check_factor,
    f"{CORE}channel_shuffle": _check_factor,
    f"{CORE}pad3d": _check_paddings,
    f"{CORE}unfold": _check_window,
    f"{CORE}pool2d": _check_pool,
    f"{CORE}pool3d": _check_pool,
    f"{CORE}conv2d": _check_convolution,
    f"{CORE}conv3d": _check_convolution,
    f"{CORE}conv2d_transpose": _check_transposed,
    f"{CORE}conv3d_transpose": _check_transposed,
    f"{CORE}depthwise_conv2d_transpose": _check_transposed,
    f"{CORE}depthwise_conv2d": _check_depthwise,
    f"{CORE}pad": _check_sides,
}
