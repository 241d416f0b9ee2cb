"""Argument checks for Paddle's object detection operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MaterializeError, MemoryLimitError
from .argument_kinds import shape_of
from .operators import CORE

MAX_LEVELS = 32
MAX_PRIORS = 2**20
MAX_BOXES = 2**20
_FLOATS = ("float32", "float64")


def _refuse(args: Sequence[Any]) -> MaterializeError:
    shapes = [list(shape_of(arg) or ()) for arg in args if shape_of(arg) != ()]
    return MaterializeError(f"has operands of shapes {', '.join(map(str, shapes[:6]))}.")


def _check_dtypes(args: Sequence[Any]) -> None:
    names = {str(arg.dtype).rpartition(".")[2].lower() for arg in args}
    if len(names) > 1 or not names <= set(_FLOATS):
        raise MaterializeError(f"has operands of {', '.join(sorted(names))}.")


def _check_counted(boxes: Any, counts: Any) -> None:
    """Raise unless `boxes` are floats of shape `(N, 4)` and `counts` is None or a vector of
    int32 or int64."""
    _check_dtypes([boxes])
    shape, numbers = shape_of(boxes), shape_of(counts) if counts is not None else (1,)
    if shape is not None and (len(shape) != 2 or shape[1] != 4):
        raise _refuse((boxes, counts))
    if numbers is not None and (len(numbers) != 1 or 0 in numbers):
        raise _refuse((boxes, counts))
    if counts is not None and not str(counts.dtype).lower().endswith(("int32", "int64")):
        raise MaterializeError("counts boxes in another dtype than int32 or int64.")


def _check_levels(args: Sequence[Any]) -> None:
    boxes, counts, least, most, refer, scale, _ = args
    _check_counted(boxes, counts)
    if not 0 <= least <= most <= MAX_LEVELS or not 0 <= refer <= MAX_LEVELS or scale < 1:
        raise MaterializeError(f"has levels from {least} to {most}.")


def _check_regions(args: Sequence[Any]) -> None:
    images, boxes, counts, height, width, _, ratio, _ = args
    _check_counted(boxes, counts)
    _check_dtypes([images, boxes])
    shape, numbers = shape_of(images), shape_of(counts) if counts is not None else None
    if shape is not None and (len(shape) != 4 or 0 in shape):
        raise _refuse(args)
    if shape and numbers and numbers[0] != shape[0]:
        raise _refuse(args)
    if counts is None and shape and shape[0] != 1:
        raise _refuse(args)
    if not (1 <= height <= 2**10 and 1 <= width <= 2**10) or ratio > 2**7:
        raise MaterializeError(f"makes regions of {height} by {width}.")


def _check_priors(args: Sequence[Any]) -> None:
    features, images, least, most, ratios, variances = args[:6]
    _check_dtypes([features, images])
    shapes = [shape_of(features), shape_of(images)]
    if any(shape is not None and (len(shape) != 4 or 0 in shape) for shape in shapes):
        raise _refuse(args)
    sizes = [*least, *most, *ratios, *variances]
    is_wrong = not least or len(most) not in (0, len(least)) or len(variances) != 4
    if is_wrong or not ratios or not all(0 < size < 2**24 for size in sizes):
        raise MaterializeError("has sizes, ratios or variances that are not boxes'.")
    if not all(0 <= step < 2**24 for step in args[8:11]):
        raise MaterializeError("has steps that are not boxes'.")
    shape = shapes[0]
    number = len(least) * (2 * len(ratios) + 2)
    if shape is not None and shape[2] * shape[3] * number > 64 * MAX_PRIORS:
        raise MemoryLimitError(f"makes more than {64 * MAX_PRIORS} boxes.")


def _check_proposals(args: Sequence[Any]) -> None:
    scores, deltas, sizes, anchors, variances = args[:5]
    _check_dtypes(args[:5])
    shape = shape_of(scores)
    others = [shape_of(operand) for operand in (deltas, sizes, anchors, variances)]
    if any(type(number) is not int or not 1 <= number <= MAX_BOXES for number in args[5:7]):
        raise MaterializeError("keeps a number of boxes that is none.")
    if not all(0 <= number <= 1 for number in (args[7], args[9])) or not 0 <= args[8] < 2**24:
        raise MaterializeError("has thresholds out of their range.")
    known = [other_shape for other_shape in others if other_shape is not None]
    if shape is None or len(known) < len(others):
        return
    if len(shape) != 4 or 0 in shape:
        raise _refuse(args)
    count, kinds, height, width = shape
    num_anchors = height * width * kinds
    if known[0] != (count, 4 * kinds, height, width) or known[1] != (count, 2):
        raise _refuse(args)
    for other_shape in known[2:]:
        if other_shape not in ((height, width, kinds, 4), (num_anchors, 4)):
            raise _refuse(args)


def _check_suppressed(args: Sequence[Any]) -> None:
    boxes, threshold = args
    _check_dtypes([boxes])
    shape = shape_of(boxes)
    if shape is not None and (len(shape) != 2 or shape[1] != 4 or not 0 < shape[0] <= MAX_BOXES):
        raise _refuse(args)
    if not 0 <= threshold <= 1:
        raise MaterializeError(f"has the threshold {threshold}.")


def _check_decoded(args: Sequence[Any]) -> None:
    """Check the arguments of `yolo_box`.

    Expected sizes are computed in Python, where integers do not overflow.
    """
    tensor, sizes, anchors, classes, _, ratio = args[:6]
    shape = shape_of(tensor)
    if len(anchors) % 2 or not 1 <= classes <= MAX_BOXES or not 1 <= ratio <= 2**15:
        raise MaterializeError(f"has {len(anchors)} anchors and {classes} classes.")
    number = len(anchors) // 2
    if shape is not None and (
        len(shape) != 4 or 0 in shape or shape[1] != number * (5 + classes + bool(args[8]))
    ):
        raise _refuse(args)
    if shape is not None and shape_of(sizes) not in (None, (shape[0], 2)):
        raise _refuse(args)


CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}distribute_fpn_proposals": _check_levels,
    f"{CORE}roi_align": _check_regions,
    f"{CORE}prior_box": _check_priors,
    f"{CORE}generate_proposals": _check_proposals,
    f"{CORE}nms": _check_suppressed,
    f"{CORE}yolo_box": _check_decoded,
}
