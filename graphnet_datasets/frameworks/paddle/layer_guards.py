"""What is compared by shape before operators of paddle that are whole layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MaterializeError
from .argument_kinds import shape_of
from .index_guards import check_indices, dtype_name
from .operators import CORE

MAX_LAYERS = 1000
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_WAYS = ("SUM", "MEAN", "MAX", "MIN")


def _check_recurrent(args: Sequence[Any]) -> None:
    tensor, states, weights, lengths, _, chance, is_both, fed, hidden, layers, mode, _, _ = args
    shape, sides = shape_of(tensor), 2 if is_both else 1
    if mode not in _GATES or not 1 <= layers <= MAX_LAYERS or hidden < 1 or not 0 <= chance <= 1:
        raise MaterializeError(f"has {layers} layers of the kind {mode[:20]!r}.")
    if len(states) != 1 + (mode == "LSTM") or len(weights) != 4 * layers * sides:
        raise MaterializeError(f"has {len(states)} states and {len(weights)} weights.")
    if len({each.dtype for each in (tensor, *states, *weights)}) > 1:
        raise MaterializeError("has operands of several dtypes.")
    if shape is None:
        return
    if len(shape) != 3 or 0 in shape or shape[2] != fed:
        raise MaterializeError(f"has the shape {list(shape)}, and is fed {fed} numbers.")
    rows, wanted = _GATES[mode] * hidden, [(layers * sides, shape[1], hidden)] * len(states)
    for at in range(layers * sides):
        wanted += [(rows, fed if at < sides else hidden * sides), (rows, hidden)]
    wanted += [(rows,)] * (2 * layers * sides)
    for each, needed in zip((*states, *weights), wanted, strict=True):
        if shape_of(each) not in (needed, None):
            raise MaterializeError(
                f"has a state or weight of {list(each.shape)} where {list(needed)} fits."
            )
    if lengths is not None and (
        shape_of(lengths) not in ((shape[1],), None) or dtype_name(lengths) != "int32"
    ):
        raise MaterializeError(f"has lengths of {list(lengths.shape)} for {shape[1]} sequences.")


def _check_messages(args: Sequence[Any]) -> None:
    tensor, sources, targets, way, rows = args
    shape, places, others = map(shape_of, (tensor, sources, targets))
    if way not in _WAYS or sources.dtype != targets.dtype:
        raise MaterializeError(f"reduces messages by {way[:20]!r}.")
    check_indices(sources)
    if isinstance(rows, (list, tuple)) and len(rows) != 1:
        raise MaterializeError(f"gives {len(rows)} sizes for one axis.")
    if shape is None or places is None or others is None:
        return
    if len(places) != 1 or places != others or not shape or 0 in (*shape, *places):
        raise MaterializeError(f"sends {list(shape)} from {list(places)} to {list(others)}.")


def _check_deformable(args: Sequence[Any]) -> None:
    images, offsets, weights, mask, steps, paddings, dilations, parts, groups, rows = args
    shape, sizes = shape_of(images), shape_of(weights)
    if not all(1 <= number <= 2**15 for number in (parts, groups, rows)):
        raise MaterializeError(f"has {parts} and {groups} groups.")
    if not len(steps) == len(paddings) == len(dilations) == 2 or min(paddings) < 0:
        raise MaterializeError(f"has the paddings {list(paddings)}.")
    if shape is None or sizes is None:
        return
    if len(shape) != 4 or len(sizes) != 4 or 0 in (*shape, *sizes):
        raise MaterializeError(f"has images of {list(shape)} and weights of {list(sizes)}.")
    is_apart = shape[1] % groups or sizes[0] % groups or shape[1] % parts
    if is_apart or sizes[1] * groups != shape[1] or shape[0] % min(rows, shape[0]):
        raise MaterializeError(f"has {groups} groups of {shape[1]} channels.")
    given = [
        (size + 2 * more - (step * (width - 1) + 1)) // stride + 1
        for size, more, step, width, stride in zip(
            shape[2:], paddings, dilations, sizes[2:], steps, strict=True
        )
    ]
    number = parts * sizes[2] * sizes[3]
    if min(given) < 1 or shape_of(offsets) not in (None, (shape[0], 2 * number, *given)):
        raise MaterializeError(f"has offsets of {list(offsets.shape)}.")
    if mask is not None and shape_of(mask) not in (None, (shape[0], number, *given)):
        raise MaterializeError(f"has a mask of {list(mask.shape)}.")


def _check_grid(args: Sequence[Any]) -> None:
    images, grid, mode, padding, _ = args
    if mode not in ("bilinear", "nearest") or padding not in ("zeros", "reflection", "border"):
        raise MaterializeError(f"samples by {mode[:20]!r}, with {padding[:20]!r} outside.")
    shape, places = shape_of(images), shape_of(grid)
    if shape is None or places is None:
        return
    is_fitting = len(shape) in (4, 5) and len(places) == len(shape) and places[0] == shape[0]
    if not is_fitting or places[-1] != len(shape) - 2 or 0 in (*shape, *places):
        raise MaterializeError(f"has images of {list(shape)} and a grid of {list(places)}.")


CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}rnn": _check_recurrent,
    f"{CORE}send_u_recv": _check_messages,
    f"{CORE}deformable_conv": _check_deformable,
    f"{CORE}grid_sample": _check_grid,
}
