"""Other integers and masks in the place of stored ones, by what they are for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .distributions import Distribution, draw
from .integers import fill_uniform, key_of_part, natural, shuffled, uniform
from .roles import InputRole, counts_up

LARGEST_NUMBER = 1e4
"""A float beyond it is taken for a mask's, not for a number that is calculated with."""

MAX_NAMES = 2**26
"""Nodes of a graph that get other names; a number in a file says how many there are, and nothing
but their names takes memory."""

_TENTH = Distribution(0.0, 0.1, -0.5, 0.5)

KEPT_SHARE = 4
"""At most one of so many places of a sequence is masked, as padding masks the end of a batch's
shorter sequences; windows of local attention still find something to attend to."""


def redraw(key: int, stored: npt.NDArray, role: InputRole) -> npt.NDArray:
    """Return an array like `stored` with other elements that its role allows, drawn by `key`.

    Tokens are drawn as often as words of a text, indices uniformly, within the bounds of what
    consumes them; an element that the graph compares with a number stays on its side of it, so
    padding stays padding. Masks hide the end of sequences, the first sequence of a batch and the
    first three quarters of each excepted. Positions count up from another start. Edges are
    relabelled and change places. What is `fixed` stays.

    >>> role = InputRole("tokens", 0, 99, borders=(0, 1))
    >>> redraw(7, np.array([5, 6, 0, 0]), role)[2:].tolist()
    [0, 0]
    """
    if not stored.size or role.kind == "fixed":
        return stored
    if role.kind == "mask":
        return _mask(key, stored)
    if role.kind == "rows":
        order = shuffled(key, stored.shape[-2])
        return np.ascontiguousarray(stored[..., order, :])
    if role.low is None or role.high is None:
        return stored
    if role.kind == "edges":
        return _edges(key, stored)
    if role.kind == "positions":
        return _positions(key, stored, role)
    if role.kind == "lengths":
        return _lengths(key, stored)
    if role.kind == "segments":
        drawn = _segments(key, stored.shape, role.low, min(role.high, role.low + 1))
    elif role.kind == "tokens":
        drawn = natural(key, stored.size, role.low, role.high).reshape(stored.shape)
    else:
        low = role.low
        if role.kind == "number" and low == role.high and not role.borders:
            low = min(low, (low + 1) // 2)  # a lone number, such as a time step: from half of it
        drawn = uniform(key, stored.size, low, role.high).reshape(stored.shape)
    return _keep_sides(key, stored, drawn, role).astype(stored.dtype)


def draw_by_role(key: int, shape: tuple[int, ...], dtype: str, role: InputRole) -> npt.NDArray:
    """Return elements for an input of which neither elements nor moments were recorded."""
    low, high = role.low or 0, role.high if role.high is not None else 1
    size = int(np.prod(shape, dtype=np.int64))
    if role.kind == "tokens":
        return natural(key, size, low, high).reshape(shape).astype(dtype)
    if role.kind == "segments":
        return _segments(key, shape, low, min(high, low + 1)).astype(dtype)
    out = np.empty(size, dtype)
    fill_uniform(key, out, low, high)
    return out.reshape(shape)


def jitter(key: int, stored: npt.NDArray) -> npt.NDArray:
    """Return stored floats moved by about a tenth of their spread; no sign changes.

    A mask among floats, which holds infinities or numbers of its size, stays as it is, and so do
    formats that NumPy lacks and complex numbers.
    """
    if stored.dtype.kind != "f" or not stored.size:
        return stored
    values = stored.astype(np.float64)
    if not np.isfinite(values).all() or float(np.abs(values).max()) > LARGEST_NUMBER:
        return stored
    spread = float(values.std()) or float(np.abs(values).max()) or 1.0
    moved = values + draw(key, stored.size, "float64", _TENTH).reshape(stored.shape) * spread
    changes_sign = moved * values < 0
    return np.where(changes_sign, values / 2, moved).astype(stored.dtype)


def _keep_sides(key: int, stored: npt.NDArray, drawn: npt.NDArray, role: InputRole) -> npt.NDArray:
    """Put each element that fell on another side of a border than the stored one back on its own.

    What lies outside of the bounds (labels to be ignored, padding of -1) stays.
    """
    assert role.low is not None and role.high is not None  # noqa: S101 - the caller looked
    before = stored.astype(np.int64)
    if role.borders:
        borders = np.array(role.borders, np.int64)
        side = np.searchsorted(borders, before, side="right")
        moved = side != np.searchsorted(borders, drawn, side="right")
        edges = np.concatenate([[role.low], borders, [role.high + 1]])
        lows = np.maximum(edges[side], role.low)
        widths = np.minimum(edges[side + 1], role.high + 1) - lows
        bits = uniform(key_of_part(key, 2), stored.size, 0, 2**31 - 1).reshape(stored.shape)
        within = (bits * np.maximum(widths, 1)) >> 31
        drawn = np.where(moved, np.where(widths > 0, lows + within, before), drawn)
    is_outside = (before < role.low) | (before > role.high)
    return np.where(is_outside, before, drawn)


def _mask(key: int, stored: npt.NDArray) -> npt.NDArray:
    """Return a mask that hides the end of sequences, or as many places in another order.

    The value of most elements is taken for the one that keeps. A mask with a structure of its own
    (causal, block by block) stays.
    """
    keep = stored.dtype.type(2 * np.count_nonzero(stored) >= stored.size)
    hides = stored != keep
    length = stored.shape[-1]
    if hides.any():
        if stored.ndim > 2 or (stored.ndim == 2 and stored.shape[0] == length):
            return stored
        if not _is_padding(hides):
            return np.ascontiguousarray(stored[..., shuffled(key, length)])
    batch = stored.shape[0] if stored.ndim > 1 else 1
    lengths = uniform(key, batch, length - length // KEPT_SHARE, length)
    if batch > 1:
        lengths[0] = length
    is_kept = np.arange(length) < lengths.reshape((batch, *[1] * (stored.ndim - 1)))
    is_kept = np.broadcast_to(is_kept if stored.ndim > 1 else is_kept.reshape(-1), stored.shape)
    return np.where(is_kept, keep, stored.dtype.type(not keep))


def _is_padding(hides: npt.NDArray) -> bool:
    """Tell whether each sequence is hidden from some place on and nowhere before."""
    return bool((hides[..., 1:] >= hides[..., :-1]).all())


def _positions(key: int, stored: npt.NDArray, role: InputRole) -> npt.NDArray:
    room = max(0, (role.high or 0) - int(stored.max()))
    if role.borders or not counts_up(stored):
        return stored
    return stored + stored.dtype.type(uniform(key, 1, 0, room)[0])


def _lengths(key: int, stored: npt.NDArray) -> npt.NDArray:
    longest = int(stored.max())
    drawn = uniform(key, stored.size, longest - longest // KEPT_SHARE, longest)
    if stored.size > 1:
        drawn[0] = longest
    return drawn.reshape(stored.shape).astype(stored.dtype)


def _segments(key: int, shape: tuple[int, ...], low: int, high: int) -> npt.NDArray:
    """Return a first segment and, from some place on, a second one in each sequence."""
    length = shape[-1] if shape else 1
    batch = int(np.prod(shape[:-1], dtype=np.int64))
    border = uniform(key, batch, (length + 1) // 2, length).reshape((*shape[:-1], 1))
    return np.where(np.arange(length) < border, low, high).reshape(shape)


def _edges(key: int, stored: npt.NDArray) -> npt.NDArray:
    """Return the same graph with its nodes renamed and its edges in another order.

    Loops stay loops and degrees stay degrees, of which shapes may follow.
    """
    low = int(stored.min())
    order = shuffled(key_of_part(key, 1), stored.shape[1])
    num_names = int(stored.max()) - low + 1
    if num_names > MAX_NAMES:
        return np.ascontiguousarray(stored[:, order])
    names = shuffled(key, num_names) + low
    return names[stored[:, order] - low].astype(stored.dtype)
