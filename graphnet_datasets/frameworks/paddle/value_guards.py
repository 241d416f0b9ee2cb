"""Checks of the elements of Paddle operands: indices, labels, divisors and boxes.

Indexing kernels access memory wherever an index points. Only operators whose kernels lack bounds
checks are listed here, since checking reads the whole tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import paddle

from ...errors import MaterializeError, MemoryLimitError
from .index_guards import MAX_BINS, dtype_name
from .operators import CORE

MAX_SAMPLED = 2**31
MAX_SCALE = 2.0**20
DIVIDING = frozenset(
    {
        f"{CORE}remainder", f"{CORE}floor_divide", f"{CORE}trunc_divide", "operator.mod",
        "operator.floordiv",
    }
)  # fmt: skip
"""Operators that divide; integer division can raise a processor fault."""


def check_divisor(args: Sequence[Any]) -> None:
    """Raise for integer divisions that fault: division by zero and of the smallest integer by -1.

    If the operands have two dtypes, both dtypes are checked, since the division may use either.

    Raises:
        MaterializeError: the operands contain such a division.
    """
    dtypes = {
        dtype_name(arg)
        for arg in args
        if isinstance(arg, paddle.Tensor) and ("int" in dtype_name(arg) or "bool" in str(arg.dtype))
    }
    if len(args) != 2 or not dtypes:
        return
    if not all(isinstance(arg, (paddle.Tensor, int)) for arg in args):
        return  # a float operand makes it a floating-point division
    dividend, divisor = args
    if type(divisor) is int and 0 < divisor < 128:
        return  # common case: no elements to read
    divisors = _elements(divisor)
    for dtype in dtypes:
        if not divisors.astype(dtype).all():
            raise MaterializeError("Integers cannot be divided by zero.")
        kind = np.dtype(dtype)
        if kind.kind != "i" or not (divisors.astype(kind) == -1).any():
            continue
        if (_elements(dividend).astype(kind) == np.iinfo(kind).min).any():
            raise MaterializeError(
                f"The smallest {dtype} cannot be divided by -1: the result overflows."
            )


def _elements(operand: Any) -> np.ndarray[Any, Any]:
    return operand.numpy() if isinstance(operand, paddle.Tensor) else np.array(operand)


def _is_within(indices: Any, least: int, end: int) -> bool:
    """Return whether all indices are in `[least, end)`; always true for values of a program."""
    if not isinstance(indices, paddle.Tensor) or not indices.size:
        return True
    elements = indices.numpy()
    return (
        elements.dtype.kind in "iu" and bool(elements.min() >= least) and bool(elements.max() < end)
    )


def _check_rows(args: Sequence[Any]) -> None:
    size = args[1].shape[0]
    if not _is_within(args[0], 0, size):
        raise MaterializeError(f"Expected row indices in [0, {size}).")


def _check_indices(indices: Any, size: int) -> None:
    if not _is_within(indices, -size, size):
        raise MaterializeError(f"Expected indices in [-{size}, {size}).")


def _check_along_axis(args: Sequence[Any]) -> None:
    _check_indices(args[1], args[0].shape[args[3]])


def _check_places(args: Sequence[Any]) -> None:
    shape = args[0].shape
    for size, indices in zip(shape, args[1], strict=False):
        if dtype_name(indices) != "bool":
            _check_indices(indices, size)


def _check_added(args: Sequence[Any]) -> None:
    _check_indices(args[1], args[0].shape[args[3]])


def _check_bins(args: Sequence[Any]) -> None:
    if not _is_within(args[0], 0, MAX_BINS):
        raise MemoryLimitError(f"Expected elements in [0, {MAX_BINS}). Skip the sample.")


def _check_labels(args: Sequence[Any]) -> None:
    tensor, label, is_soft, _, _, ignored, axis = args
    if is_soft or not isinstance(label, paddle.Tensor) or not isinstance(tensor, paddle.Tensor):
        return
    class_indices, size = label.numpy(), tensor.shape[axis]
    if ((class_indices != ignored) & ((class_indices < 0) | (class_indices >= size))).any():
        raise MaterializeError(f"Expected labels in [0, {size}), or equal to {ignored}.")


def _check_chances(args: Sequence[Any]) -> None:
    tensor, number, is_repeated = args
    if not isinstance(tensor, paddle.Tensor):
        return
    weights = tensor.astype("float64").numpy()
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights.sum(-1) > 0).all():
        raise MaterializeError(
            "Expected the probabilities of each row to be finite and non-negative with a positive "
            "sum."
        )
    if not is_repeated and ((weights > 0).sum(-1) < number).any():
        raise MaterializeError(
            f"Expected at least {number} positive probabilities per row to draw {number} samples "
            "without replacement."
        )


def _check_finite(args: Sequence[Any]) -> None:
    """Raise if boxes or scores are not finite, since sorting relies on their order."""
    for arg in args:
        is_known = isinstance(arg, paddle.Tensor) and "float" in dtype_name(arg)
        if is_known and not np.isfinite(arg.numpy()).all():
            raise MaterializeError("Expected all boxes and scores to be finite.")


def _check_counts(boxes: Any, counts: Any) -> None:
    if isinstance(counts, paddle.Tensor) and isinstance(boxes, paddle.Tensor):
        numbers = counts.numpy().astype(np.int64)
        if (numbers < 0).any() or numbers.sum() != boxes.shape[0]:
            raise MaterializeError(
                f"Expected non-negative box counts with a sum of {boxes.shape[0]}, got a sum of "
                f"{int(numbers.sum())}."
            )


def _check_levels(args: Sequence[Any]) -> None:
    _check_counts(*args[:2])
    _check_finite(args[:1])


def _check_regions(args: Sequence[Any]) -> None:
    """Limit the sample count of `roi_align`: without a sampling ratio, kernels sample every
    pixel of a region."""
    _, boxes, counts, height, width, scale, ratio, is_aligned = args
    _check_counts(boxes, counts)
    _check_finite([boxes])
    if not 0 < scale <= MAX_SCALE:
        raise MaterializeError(f"Expected a spatial scale in (0, {MAX_SCALE:g}], got {scale}.")
    if ratio > 0 or not isinstance(boxes, paddle.Tensor):
        return
    scaled_boxes = boxes.numpy().astype(np.float64) * scale
    sides = scaled_boxes[:, 2:] - scaled_boxes[:, :2]
    if not is_aligned:
        sides = sides.clip(1)
    samples = np.ceil(sides / (width, height)).prod(-1)
    if (samples < 0).any():
        raise MaterializeError("Expected all boxes to have non-negative widths and heights.")
    if samples.sum() * height * width > MAX_SAMPLED:
        raise MemoryLimitError(
            f"The boxes contain more than {MAX_SAMPLED} sampling points. Skip the sample."
        )


def _check_messages(args: Sequence[Any]) -> None:
    tensor, sources, targets, _, sizes = args
    size = tensor.shape[0]
    room = next(
        (
            output_size
            for output_size in sizes or ()
            if type(output_size) is int and output_size > 0
        ),
        size,
    )
    if not _is_within(sources, 0, size) or not _is_within(targets, 0, room):
        raise MaterializeError(
            f"Expected source indices in [0, {size}) and target indices in [0, {room})."
        )


def _check_lengths(args: Sequence[Any]) -> None:
    steps, lengths = args[0].shape[0], args[3]
    if lengths is not None and not _is_within(lengths, 1, steps + 1):
        raise MaterializeError(f"Expected sequence lengths in [1, {steps}].")


VALUE_CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}embedding": _check_rows,
    f"{CORE}put_along_axis": _check_along_axis,
    f"{CORE}index_put": _check_places,
    f"{CORE}index_add": _check_added,
    f"{CORE}bincount": _check_bins,
    f"{CORE}cross_entropy_with_softmax": _check_labels,
    f"{CORE}multinomial": _check_chances,
    f"{CORE}distribute_fpn_proposals": _check_levels,
    f"{CORE}roi_align": _check_regions,
    f"{CORE}generate_proposals": _check_finite,
    f"{CORE}nms": _check_finite,
    f"{CORE}send_u_recv": _check_messages,
    f"{CORE}rnn": _check_lengths,
}
"""Checks that read elements, by the name of the out-of-place operator."""
