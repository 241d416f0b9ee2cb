"""Argument checks for Paddle operators that implement whole layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MaterializeError
from .argument_kinds import is_tensor, shape_of
from .index_guards import check_indices, dtype_name
from .operators import CORE

MAX_LAYERS = 1000
MAX_FACTOR = 2**20
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_WAYS = ("SUM", "MEAN", "MAX", "MIN")


def _check_recurrent(args: Sequence[Any]) -> None:
    tensor, states, weights, lengths, _, chance, is_both, fed, hidden, layers, mode, _, _ = args
    shape, sides = shape_of(tensor), 2 if is_both else 1
    if not 1 <= layers <= MAX_LAYERS or hidden < 1 or not 0 <= chance <= 1:
        raise MaterializeError(
            f"Expected 1 to {MAX_LAYERS} layers, a hidden size of at least 1 and a dropout "
            f"probability in [0, 1], got {layers}, {hidden} and {chance}."
        )
    if len(states) != 1 + (mode == "LSTM") or len(weights) != 4 * layers * sides:
        raise MaterializeError(
            f"Expected {1 + (mode == 'LSTM')} states and {4 * layers * sides} weights, got "
            f"{len(states)} and {len(weights)}."
        )
    if len({operand.dtype for operand in (tensor, *states, *weights)}) > 1:
        raise MaterializeError("Expected input, states and weights to have the same dtype.")
    if shape is None:
        return
    if len(shape) != 3 or 0 in shape or shape[2] != fed:
        raise MaterializeError(
            f"Expected a non-empty 3-D input with {fed} features, got shape {list(shape)}."
        )
    rows, wanted = _GATES[mode] * hidden, [(layers * sides, shape[1], hidden)] * len(states)
    for at in range(layers * sides):
        wanted += [(rows, fed if at < sides else hidden * sides), (rows, hidden)]
    wanted += [(rows,)] * (2 * layers * sides)
    for operand, needed in zip((*states, *weights), wanted, strict=True):
        if shape_of(operand) not in (needed, None):
            raise MaterializeError(
                f"Expected a state or weight of shape {list(needed)}, got {list(operand.shape)}."
            )
    if lengths is not None and (
        shape_of(lengths) not in ((shape[1],), None) or dtype_name(lengths) != "int32"
    ):
        raise MaterializeError(
            f"Expected {shape[1]} sequence lengths of dtype int32, got shape "
            f"{list(lengths.shape)} and dtype {dtype_name(lengths)}."
        )


def _check_messages(args: Sequence[Any]) -> None:
    tensor, sources, targets, way, rows = args
    shape, places, target_shape = map(shape_of, (tensor, sources, targets))
    if way not in _WAYS or sources.dtype != targets.dtype:
        raise MaterializeError(
            f"Expected source and target indices of the same dtype and a reduction of "
            f"{', '.join(_WAYS)}, got {dtype_name(sources)}, {dtype_name(targets)} and "
            f"{way[:20]!r}."
        )
    check_indices(sources)
    if isinstance(rows, (list, tuple)) and len(rows) != 1:
        raise MaterializeError(f"Expected a single output size, got {len(rows)}.")
    if shape is None or places is None or target_shape is None:
        return
    if len(places) != 1 or places != target_shape or not shape or 0 in (*shape, *places):
        raise MaterializeError(
            "Expected non-empty rows and two non-empty index vectors of the same length, got "
            f"shapes {list(shape)}, {list(places)} and {list(target_shape)}."
        )


def _check_deformable(args: Sequence[Any]) -> None:
    images, offsets, weights, mask, steps, paddings, dilations, parts, groups, rows = args
    shape, sizes = shape_of(images), shape_of(weights)
    if not all(1 <= number <= 2**15 for number in (parts, groups, rows)):
        raise MaterializeError(
            f"Expected `deformable_groups`, `groups` and `im2col_step` in [1, {2**15}], got "
            f"{parts}, {groups} and {rows}."
        )
    if not len(steps) == len(paddings) == len(dilations) == 2 or min(paddings) < 0:
        raise MaterializeError(
            "Expected 2 strides, 2 non-negative paddings and 2 dilations, got "
            f"{list(steps)}, {list(paddings)} and {list(dilations)}."
        )
    if shape is None or sizes is None:
        return
    if len(shape) != 4 or len(sizes) != 4 or 0 in (*shape, *sizes):
        raise MaterializeError(
            "Expected non-empty 4-D images and weights, got shapes "
            f"{list(shape)} and {list(sizes)}."
        )
    is_apart = shape[1] % groups or sizes[0] % groups or shape[1] % parts
    if is_apart or sizes[1] * groups != shape[1] or shape[0] % min(rows, shape[0]):
        raise MaterializeError(
            f"Images of shape {list(shape)} and weights of shape {list(sizes)} cannot be divided "
            f"into {groups} groups, {parts} deformable groups and steps of {rows} images."
        )
    output_sizes = [
        (size + 2 * more - (step * (width - 1) + 1)) // stride + 1
        for size, more, step, width, stride in zip(
            shape[2:], paddings, dilations, sizes[2:], steps, strict=True
        )
    ]
    number = parts * sizes[2] * sizes[3]
    if min(output_sizes) < 1 or shape_of(offsets) not in (
        None,
        (shape[0], 2 * number, *output_sizes),
    ):
        raise MaterializeError(
            "Expected a non-empty result and offsets of shape "
            f"{[shape[0], 2 * number, *output_sizes]}, got {list(offsets.shape)}."
        )
    if mask is not None and shape_of(mask) not in (None, (shape[0], number, *output_sizes)):
        raise MaterializeError(
            f"Expected a mask of shape {[shape[0], number, *output_sizes]}, got {list(mask.shape)}."
        )


def _check_grid(args: Sequence[Any]) -> None:
    images, grid, _, padding, _ = args
    if padding not in ("zeros", "reflection", "border"):
        raise MaterializeError(
            f"Expected a padding mode of zeros, reflection or border, got {padding[:20]!r}."
        )
    shape, places = shape_of(images), shape_of(grid)
    if shape is None or places is None:
        return
    is_fitting = len(shape) in (4, 5) and len(places) == len(shape) and places[0] == shape[0]
    if not is_fitting or places[-1] != len(shape) - 2 or 0 in (*shape, *places):
        raise MaterializeError(
            "Expected non-empty 4-D or 5-D images and a grid with one coordinate per spatial axis, "
            f"got shapes {list(shape)} and {list(places)}."
        )


def _check_parts(tensor: Any, size: int, parts: Sequence[Any]) -> None:
    """Raise if optional per-channel vectors have the wrong length or different dtypes."""
    present = [part for part in parts if part is not None]
    if len({part.dtype for part in present}) > 1:
        raise MaterializeError("Expected weights and statistics of the same dtype.")
    for part in present:
        if shape_of(part) not in ((size,), None):
            raise MaterializeError(
                f"Expected weights and statistics of shape [{size}] for an input of shape "
                f"{list(tensor.shape)}, got {list(part.shape)}."
            )


def _check_normalized(args: Sequence[Any]) -> None:
    """Check the per-channel weights and statistics of batch, group and instance normalization."""
    tensor = args[0]
    shape = shape_of(tensor)
    if shape is None:
        return
    layout = next((arg for arg in args if isinstance(arg, str)), "NC")
    if len(shape) < 2:
        raise MaterializeError(f"Expected an input of at least 2 axes, got shape {list(shape)}.")
    channels = shape[1] if layout.startswith("NC") else shape[-1]
    _check_parts(tensor, channels, [arg for arg in args[1:] if is_tensor(arg)])
    if len(args) == 6 and channels % args[4]:  # group_norm
        raise MaterializeError(
            f"Expected a number of groups that divides {channels} channels, got {args[4]}."
        )


def _check_layer_norm(args: Sequence[Any]) -> None:
    shape = shape_of(args[0])
    if shape is not None:
        _check_parts(args[0], math.prod(shape[args[4] :]), args[1:3])


def _check_rms_norm(args: Sequence[Any]) -> None:
    shape, sizes = shape_of(args[0]), tuple(args[2])
    if shape is None:
        return
    if not sizes or shape[-len(sizes) :] != sizes:
        raise MaterializeError(
            f"Expected `normalized_shape` to be the last sizes of {list(shape)}, got {list(sizes)}."
        )
    if args[1] is not None and math.prod(shape_of(args[1]) or sizes) != math.prod(sizes):
        raise MaterializeError(
            f"Expected a scale of shape {list(sizes)}, got {list(args[1].shape)}."
        )


def _check_leaking(args: Sequence[Any]) -> None:
    shape, slopes = shape_of(args[0]), shape_of(args[1])
    if shape is None or slopes is None:
        return
    last = args[2][-1] == "C"
    channels = shape[-1 if last else 1] if len(shape) > 1 else 1
    wanted = {"all": 1, "channel": channels}.get(args[3], math.prod(shape[1:]))
    if math.prod(slopes) != wanted or 0 in shape:
        raise MaterializeError(
            f"Expected {wanted} slopes for a non-empty input of shape {list(shape)}, got shape "
            f"{list(slopes)}."
        )


def _check_scaled(args: Sequence[Any]) -> None:
    """Check the target sizes and scale factors of image interpolation."""
    sizes, factors = args[5:8], args[8] if isinstance(args[8], (list, tuple)) else [args[8]]
    if not all(size == -1 or size >= 1 for size in sizes):
        raise MaterializeError(
            f"Expected output sizes of at least 1 (or -1 for unset), got {list(sizes)}."
        )
    if len(factors) > 3 or not all(0 < factor <= MAX_FACTOR for factor in factors):
        raise MaterializeError(
            f"Expected at most 3 scale factors in (0, {MAX_FACTOR}], got {factors[:4]}."
        )
    shape = shape_of(args[0])
    if shape is not None and (not 3 <= len(shape) <= 5 or 0 in shape):
        raise MaterializeError(
            f"Expected non-empty images of 3 to 5 axes, got shape {list(shape)}."
        )


CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}rnn": _check_recurrent,
    f"{CORE}send_u_recv": _check_messages,
    f"{CORE}deformable_conv": _check_deformable,
    f"{CORE}grid_sample": _check_grid,
    **dict.fromkeys(
        (
            f"{CORE}{name}"
            for name in ("batch_norm", "sync_batch_norm", "sync_batch_norm_", "group_norm")
        ),
        _check_normalized,
    ),
    f"{CORE}instance_norm": _check_normalized,
    f"{CORE}layer_norm": _check_layer_norm,
    f"{CORE}rms_norm": _check_rms_norm,
    f"{CORE}prelu": _check_leaking,
    **{
        f"{CORE}{name}_interp": _check_scaled
        for name in ("bicubic", "bilinear", "linear", "nearest")
    },
}
