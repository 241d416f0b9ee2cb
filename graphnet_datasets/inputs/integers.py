"""Random integers with uniform or Zipf distribution, and random permutations.

Only integer arithmetic is used, so that results are identical on every machine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .draws import SEGMENT_SIZE, fill_bits

_CHUNK = 4 * SEGMENT_SIZE
_FIRST_OCTAVE = 8
"""Number of tokens in the first, most frequent octave; each later octave has twice as many."""


def key_of_part(key: int, part: int) -> int:
    """Return the key of part 0 to 3 of a tensor. Keys are far enough apart for epochs not to
    coincide."""
    return (key + (part << 62)) % 2**64


def fill_uniform(key: int, out: npt.NDArray, first: int, last: int) -> None:
    """Fill the flat array `out` with uniform integers from `first` to `last`, inclusive."""
    width = last - first + 1
    bits = np.empty(min(_CHUNK, out.size), np.uint32)
    for start in range(0, out.size, _CHUNK):
        piece = out[start : start + _CHUNK]
        drawn = bits[: piece.size]
        fill_bits(key, start, drawn)
        scaled = drawn.astype(np.uint64)
        if width <= 2**32:
            scaled *= np.uint64(width)
            scaled >>= np.uint64(32)
        else:
            fill_bits(key_of_part(key, 1), start, drawn)
            scaled = (scaled << np.uint64(32)) | drawn
            if width < 2**64:
                scaled %= np.uint64(width)
        # Arithmetic modulo 2**64 is correct for signed dtypes too.
        piece[:] = (scaled + np.uint64(first % 2**64)).view(np.int64).astype(out.dtype)


def uniform(key: int, size: int, first: int, last: int) -> npt.NDArray[np.int64]:
    """Return `size` uniform integers from `first` to `last`, inclusive.

    >>> bool(np.isin(uniform(1, 100, 3, 5), [3, 4, 5]).all())
    True
    """
    out = np.empty(size, np.int64)
    fill_uniform(key, out, first, last)
    return out


def natural(key: int, size: int, first: int, last: int) -> npt.NDArray[np.int64]:
    """Return `size` integers from `first` to `last`, distributed like words in natural language.

    The distribution approximates the Zipf-Mandelbrot law: number k has a probability of about 1 /
    (k - first + 8), up to a constant. All octaves (8 numbers, then 16, 32, …) are equally likely,
    except that a truncated last octave is weighted by its share. Vocabularies of byte pairs and
    word pieces are sorted by frequency in this way.

    >>> drawn = natural(1, 10_000, 0, 29_999)
    >>> int(drawn.min()) >= 0, int(drawn.max()) < 30_000, bool(np.median(drawn) < 1000)
    (True, True, True)
    """
    starts, widths, weights = [], [], []
    start, octave = 0, _FIRST_OCTAVE
    width = last - first + 1
    while start < width:
        width_of_octave = min(octave, width - start)
        starts.append(start)
        widths.append(width_of_octave)
        weights.append(max(1, width_of_octave * 2**16 // octave))
        start, octave = start + width_of_octave, octave * 2
    ends = np.cumsum(weights)
    chosen = np.searchsorted(ends, uniform(key, size, 0, int(ends[-1]) - 1), side="right")
    # Positions within octaves use separate bits; octaves are less than 2**32 wide.
    bits = uniform(key_of_part(key, 1), size, 0, 2**31 - 1)
    within = (bits.astype(np.uint64) * np.array(widths, np.uint64)[chosen]) >> np.uint64(31)
    return np.array(starts, np.int64)[chosen] + within.astype(np.int64) + first


def shuffled(key: int, size: int) -> npt.NDArray[np.intp]:
    """Return a permutation of 0 to `size - 1` that depends on `key`."""
    bits = uniform(key, size, 0, 2**63 - 1)
    return np.argsort(bits, kind="stable")
