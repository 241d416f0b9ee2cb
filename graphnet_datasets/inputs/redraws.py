"""Replacement of stored integers and masks with random values that suit their role."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .distributions import Distribution, draw
from .integers import fill_uniform, key_of_part, natural, shuffled, uniform
from .roles import InputRole, counts_up

LARGEST_NUMBER = 1e4
"""A float tensor with a larger absolute value is treated as an attention mask."""

MAX_NAMES = 2**26
"""Maximum number of graph nodes to relabel. The number comes from a file and determines the
memory for the labels."""

_TENTH = Distribution(0.0, 0.1, -0.5, 0.5)

KEPT_SHARE = 4
"""At most a fraction 1 / KEPT_SHARE of a sequence is masked, like the padding of shorter
sequences in a batch. Local attention windows thus keep unmasked positions."""


def redraw(key: int, stored: npt.NDArray, role: InputRole) -> npt.NDArray:
    """Return random elements for an array like `stored`, as its role allows.

    Tokens have the frequencies of words in prose. Indices are uniform within the bounds of the
    operators that use them. An element that the graph compares with a number stays on the same side
    of that number, so that padding remains padding. Masks hide the ends of sequences, but never the
    first sequence of a batch or the first three quarters of a sequence. Positions count up from
    another start. The nodes of edges are relabeled and the edges permuted. Elements with the role
    `fixed` are unchanged.

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
            low = min(low, (low + 1) // 2)  # a single number, such as a time step: from half of it
        drawn = uniform(key, stored.size, low, role.high).reshape(stored.shape)
    return keep_sides(key, stored, drawn, role).astype(stored.dtype)


def draw_by_role(key: int, shape: tuple[int, ...], dtype: str, role: InputRole) -> npt.NDArray:
    """Return elements for an input without recorded elements or moments."""
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
    """Perturb stored floats by about a tenth of their spread, without changing signs.

    Float masks (with infinities or very large numbers), complex numbers and formats that NumPy
    lacks are unchanged.
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


def keep_sides(key: int, stored: npt.NDArray, drawn: npt.NDArray, role: InputRole) -> npt.NDArray:
    """Redraw elements that are not on the same side of all borders as the stored elements.

    Elements out of bounds (ignored labels, padding of -1) are unchanged.
    """
    assert role.low is not None and role.high is not None  # noqa: S101 - checked by the caller
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
    """Return a mask that hides the ends of sequences, or a permutation of an irregular mask.

    The more frequent value is assumed to mean "keep". Masks with a structure (causal, blockwise)
    are unchanged.
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
    """Return whether each sequence is hidden exactly from some position to its end."""
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
    """Return sequences of a first segment followed by a second segment."""
    length = shape[-1] if shape else 1
    batch = int(np.prod(shape[:-1], dtype=np.int64))
    border = uniform(key, batch, (length + 1) // 2, length).reshape((*shape[:-1], 1))
    return np.where(np.arange(length) < border, low, high).reshape(shape)


def _edges(key: int, stored: npt.NDArray) -> npt.NDArray:
    """Return the same graph with relabeled nodes and permuted edges.

    Self-loops and the degree distribution, which shapes may depend on, are preserved.
    """
    low = int(stored.min())
    order = shuffled(key_of_part(key, 1), stored.shape[1])
    num_names = int(stored.max()) - low + 1
    if num_names > MAX_NAMES:
        return np.ascontiguousarray(stored[:, order])
    names = shuffled(key, num_names) + low
    return names[stored[:, order] - low].astype(stored.dtype)
