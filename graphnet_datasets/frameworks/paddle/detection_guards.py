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
    return MaterializeError(
        f"The shapes of the operands do not match: {', '.join(map(str, shapes[:6]))}."
    )


def _check_dtypes(args: Sequence[Any]) -> None:
    names = {str(arg.dtype).rpartition(".")[2].lower() for arg in args}
    if len(names) > 1 or not names <= set(_FLOATS):
        raise MaterializeError(
            f"Expected operands of the same dtype, float32 or float64, got "
            f"{', '.join(sorted(names))}."
        )


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
        raise MaterializeError(f"Expected box counts of dtype int32 or int64, got {counts.dtype}.")


def _check_levels(args: Sequence[Any]) -> None:
    boxes, counts, least, most, refer, scale, _ = args
    _check_counted(boxes, counts)
    if not 0 <= least <= most <= MAX_LEVELS or not 0 <= refer <= MAX_LEVELS or scale < 1:
        raise MaterializeError(
            f"Expected levels in [0, {MAX_LEVELS}] in ascending order and a scale of at least 1, "
            f"got levels {least} to {most} (reference level {refer}) and scale {scale}."
        )


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
        raise MaterializeError(
            f"Expected a pooled height and width in [1, {2**10}] and a sampling ratio of at most "
            f"{2**7}, got {height}, {width} and {ratio}."
        )


def _check_priors(args: Sequence[Any]) -> None:
    features, images, least, most, ratios, variances = args[:6]
    _check_dtypes([features, images])
    shapes = [shape_of(features), shape_of(images)]
    if any(shape is not None and (len(shape) != 4 or 0 in shape) for shape in shapes):
        raise _refuse(args)
    sizes = [*least, *most, *ratios, *variances]
    is_wrong = not least or len(most) not in (0, len(least)) or len(variances) != 4
    if is_wrong or not ratios or not all(0 < size < 2**24 for size in sizes):
        raise MaterializeError(
            "Expected at least one minimum size and one aspect ratio, as many maximum sizes as "
            "minimum sizes or none, and 4 variances, all in (0, 2**24)."
        )
    if not all(0 <= step < 2**24 for step in args[8:11]):
        raise MaterializeError(f"Expected steps and offset in [0, 2**24), got {list(args[8:11])}.")
    shape = shapes[0]
    number = len(least) * (2 * len(ratios) + 2)
    if shape is not None and shape[2] * shape[3] * number > 64 * MAX_PRIORS:
        raise MemoryLimitError(
            f"The result has more than {64 * MAX_PRIORS} boxes. Skip the sample."
        )


def _check_proposals(args: Sequence[Any]) -> None:
    scores, deltas, sizes, anchors, variances = args[:5]
    _check_dtypes(args[:5])
    shape = shape_of(scores)
    others = [shape_of(operand) for operand in (deltas, sizes, anchors, variances)]
    if any(type(number) is not int or not 1 <= number <= MAX_BOXES for number in args[5:7]):
        raise MaterializeError(
            f"Expected box counts to be integers in [1, {MAX_BOXES}], got {list(args[5:7])}."
        )
    if not all(0 <= number <= 1 for number in (args[7], args[9])) or not 0 <= args[8] < 2**24:
        raise MaterializeError(
            "Expected an overlap threshold and `eta` in [0, 1] and a minimum size in [0, 2**24), "
            f"got {args[7]}, {args[9]} and {args[8]}."
        )
    known_shapes = [other_shape for other_shape in others if other_shape is not None]
    if shape is None or len(known_shapes) < len(others):
        return
    if len(shape) != 4 or 0 in shape:
        raise _refuse(args)
    count, kinds, height, width = shape
    num_anchors = height * width * kinds
    if known_shapes[0] != (count, 4 * kinds, height, width) or known_shapes[1] != (count, 2):
        raise _refuse(args)
    for other_shape in known_shapes[2:]:
        if other_shape not in ((height, width, kinds, 4), (num_anchors, 4)):
            raise _refuse(args)


def _check_suppressed(args: Sequence[Any]) -> None:
    boxes, threshold = args
    _check_dtypes([boxes])
    shape = shape_of(boxes)
    if shape is not None and (len(shape) != 2 or shape[1] != 4 or not 0 < shape[0] <= MAX_BOXES):
        raise _refuse(args)
    if not 0 <= threshold <= 1:
        raise MaterializeError(f"Expected a threshold in [0, 1], got {threshold}.")


def _check_decoded(args: Sequence[Any]) -> None:
    """Check the arguments of `yolo_box`.

    Expected sizes are computed in Python, where integers do not overflow.
    """
    tensor, sizes, anchors, classes, _, ratio = args[:6]
    shape = shape_of(tensor)
    if len(anchors) % 2 or not 1 <= classes <= MAX_BOXES or not 1 <= ratio <= 2**15:
        raise MaterializeError(
            f"Expected an even number of anchor sizes, 1 to {MAX_BOXES} classes and a "
            f"downsampling ratio in [1, {2**15}], got {len(anchors)}, {classes} and {ratio}."
        )
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
