"""Window membership of the positions that pooling operators return."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...analysis.orders import Window

_MAX_CELLS = 2**16
"""The number of windows up to which ties are searched; larger graphs count as having ties."""


def are_in_windows(
    window: Window, positions: npt.NDArray, cells: npt.NDArray, eager: npt.NDArray,
    in_shape: Sequence[int], out_shape: Sequence[int],
) -> bool:  # fmt: skip
    """Return whether each position is in the window of its cell.

    Args:
        window: the windows of the operator.
        positions: flat positions in the spatial dimensions of the input, (n,).
        cells: flat positions in the spatial dimensions of the output, (n,).
        eager: eager's positions, (n,). They locate windows that start at random places.
        in_shape: spatial sizes of the input.
        out_shape: spatial sizes of the output.

    >>> window = Window(kernel=(2,), stride=(2,))
    >>> arrays = (np.array(values) for values in ([1, 2], [0, 1], [0, 2]))
    >>> are_in_windows(window, *arrays, (4,), (2,))
    True
    """
    if positions.size and not (positions.min() >= 0 and positions.max() < math.prod(in_shape)):
        return False
    own, base, of_cells = (
        np.unravel_index(flat, shape)
        for flat, shape in ((positions, in_shape), (eager, in_shape), (cells, out_shape))
    )
    for axis, (length, count) in enumerate(zip(in_shape, out_shape, strict=True)):
        if window.is_random:
            reach = window.kernel[axis] - 1
            if (np.abs(own[axis] - base[axis]) > reach).any():
                return False
            continue
        starts, stops, step = _bounds(window, axis, length, count)
        offset = own[axis] - starts[of_cells[axis]]
        is_inside = (offset >= 0) & (own[axis] < stops[of_cells[axis]]) & (offset % step == 0)
        if not is_inside.all():
            return False
    return True


def has_tied_maxima(window: Window, keys: npt.NDArray, num_axes: int, *, rtol: float = 0.0) -> bool:
    """Return whether a window contains its maximum more than once; `keys` are (…, *spatial).

    Elements that differ from the maximum by up to `rtol` times its magnitude are equal to it.

    >>> keys = np.array([0.0, 0.0, 1.0, 2.0])
    >>> has_tied_maxima(Window((2,), (2,)), keys, 1)
    True
    >>> has_tied_maxima(Window((2,), (2,)), keys[1:], 1)
    False
    """
    in_shape = keys.shape[keys.ndim - num_axes :]
    out_shape = window.kernel
    if not window.is_adaptive:  # with the windows that `ceil_mode` adds
        sizes = zip(in_shape, window.padding, window.stride, strict=False)
        out_shape = tuple(-(-(length + padding) // stride) for length, padding, stride in sizes)
    if window.is_random or not out_shape or math.prod(out_shape) > _MAX_CELLS:
        return True
    bounds = [
        _bounds(window, axis, length, count)
        for axis, (length, count) in enumerate(zip(in_shape, out_shape, strict=True))
    ]
    for cell in itertools.product(*map(range, out_shape)):
        places = [
            slice(_first(int(starts[at]), step), max(int(stops[at]), 0), step)
            for at, (starts, stops, step) in zip(cell, bounds, strict=True)
        ]
        part = keys[(..., *places)].reshape(*keys.shape[: keys.ndim - num_axes], -1)
        if part.shape[-1] < 2:
            continue
        top = part.max(axis=-1, keepdims=True)
        least = top - rtol * np.where(np.isfinite(top), np.abs(top), 0)
        if ((part >= least).sum(-1) > 1).any():
            return True
    return False


def _first(start: int, step: int) -> int:
    """Return the first position of a window that is inside the input."""
    return start % step if start < 0 else start


def _bounds(
    window: Window, axis: int, length: int, count: int
) -> tuple[npt.NDArray, npt.NDArray, int]:
    """Return the start and stop of each cell's window along an axis, and its step."""
    cells = np.arange(count)
    if window.is_adaptive:
        return cells * length // count, -(-(cells + 1) * length // count), 1
    step = window.dilation[axis]
    starts = cells * window.stride[axis] - window.padding[axis]
    return starts, np.minimum(starts + (window.kernel[axis] - 1) * step + 1, length), step
