"""Precomputed blocks of random normals and bits, from which tensors are read.

Drawing a normal takes about 20 ns; reading one from a cached block takes less than 1 ns. A block of
`BLOCK_SIZE` normals is therefore computed once per process. Element i of a tensor is the sum of two
entries (a sum of two normals is a normal), at two addresses determined by the tensor's key and i:

- The tensor is divided into epochs of `BLOCK_SIZE` elements, and an epoch into segments of
  `SEGMENT_SIZE`. Within an epoch, the segments of the block are visited with an odd stride from a
  starting point, so that every entry is used exactly once as the first and once as the second
  summand.
- The stride and starting point of both summands come from a 64-bit hash of (key, epoch), so there
  is no period below 2**64 epochs. An entry is reused once per epoch of 262,144 elements, each time
  at another distance and with another partner. The correlation of neighboring epochs is at most
  0.5, at one lag per pair of segments; that of a long tensor is about SEGMENT_SIZE / its length.

The block is identical on every machine. It holds the 2**18 quantiles of the normal distribution at
(i + 1/2) / 2**18, in an order drawn from Philox (whose raw stream NumPy guarantees). The quantiles
are computed only with operations that IEEE 754 rounds correctly (+ - * / sqrt).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .elementary import log, polynomial

BLOCK_SIZE = 2**18
"""Entries of a block: 1 MiB of float32, which fits in a core's L2 cache."""
SEGMENT_SIZE = 2**14
SEGMENTS_PER_EPOCH = BLOCK_SIZE // SEGMENT_SIZE
_IN_BLOCK = BLOCK_SIZE - 1
_PHILOX_KEY = 0x67726170_686E6574
_WORD = 2**64 - 1

Float32 = npt.NDArray[np.float32]
UInt32 = npt.NDArray[np.uint32]
Words = TypeVar("Words", int, npt.NDArray[np.uint64])
"""Integers modulo 2**64: a Python int, masked to 64 bits, or an array, which wraps around."""


def prepare_blocks() -> None:
    """Compute both blocks (about 60 ms). Called in processes that fork workers, before they
    fork."""
    normal_block()
    bit_block()


@functools.cache
def normal_block() -> Float32:
    """Return the block of normals with mean 0 and variance 1/2; its first segment is repeated at
    the end.

    The variance is 1/2 because elements are sums of two entries.
    """
    upper = _normal_quantiles_of_upper_half(BLOCK_SIZE)
    quantiles = np.concatenate([-upper[::-1], upper]) * math.sqrt(0.5)
    order = np.argsort(np.random.Philox(key=_PHILOX_KEY).random_raw(BLOCK_SIZE), kind="stable")
    return _with_wrap(quantiles.astype(np.float32)[order])


@functools.cache
def bit_block() -> UInt32:
    """Return the block of random bits; its first segment is repeated at the end."""
    raw = np.random.Philox(key=_PHILOX_KEY + 1).random_raw(BLOCK_SIZE)
    return _with_wrap((raw >> np.uint64(32)).astype(np.uint32))


_interruption: contextvars.ContextVar[Callable[[], None] | None] = contextvars.ContextVar(
    "interruption", default=None
)


@contextlib.contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` now and before each chunk of a tensor drawn in the block; `check` raises to
    stop."""
    token = _interruption.set(check)
    try:
        check()
        yield
    finally:
        _interruption.reset(token)


def check_interruption() -> None:
    """Call the check set by `interrupted_by`, if any."""
    if (check := _interruption.get()) is not None:
        check()


def scaled_block(mean: float, std: float) -> Float32:
    """Return the block scaled and shifted, so that a sum of two entries has this mean and standard
    deviation.

    This replaces two passes over a tensor with two passes over a block, which is faster for tensors
    larger than a block.
    """
    block = normal_block() * np.float32(std)
    block += np.float32(mean / 2)
    return block


def fill_normals(key: int, start: int, out: Float32, block: Float32 | None = None) -> None:
    """Fill `out` with the standard normals `start`, `start + 1`, … of `key`, or those from a
    `scaled_block`.

    `start` must be a multiple of `SEGMENT_SIZE`.
    """
    _fill(normal_block() if block is None else block, np.add, key, start, out)


def fill_bits(key: int, start: int, out: UInt32) -> None:
    """Fill `out` with the uniform 32-bit integers `start`, `start + 1`, … of `key`."""
    _fill(bit_block(), np.bitwise_xor, key, start, out)


def _fill(block: npt.NDArray, combine: np.ufunc, key: int, start: int, out: npt.NDArray) -> None:
    check_interruption()
    begin, size = 0, out.size
    addresses = _addresses(key, start // SEGMENT_SIZE, -(-size // SEGMENT_SIZE))
    # Positional arguments and no helper calls: at 4 µs per segment, Python overhead matters.
    for first, second in addresses:
        end = min(begin + SEGMENT_SIZE, size)
        count = end - begin
        combine(block[first : first + count], block[second : second + count], out[begin:end])
        begin = end


def _addresses(key: int, first_segment: int, num_segments: int) -> list[tuple[int, int]]:
    """Return the start addresses of both summands of each segment."""
    addresses: list[tuple[int, int]] = []
    segment, end = first_segment, first_segment + num_segments
    while segment < end:
        epoch, position = divmod(segment, SEGMENTS_PER_EPOCH)
        (first, first_step), (second, second_step) = _kept_ways(key, epoch)
        places = range(position, min(SEGMENTS_PER_EPOCH, position + end - segment))
        addresses += [
            ((first + first_step * place) & _IN_BLOCK, (second + second_step * place) & _IN_BLOCK)
            for place in places
        ]
        segment += len(places)
    return addresses


def all_addresses(key: int, num_segments: int) -> npt.NDArray[np.int64]:
    """Return the start addresses of both summands of the first segments, of shape (2,
    num_segments).

    For callers that add up the summands elsewhere, many segments at a time.

    >>> addresses = all_addresses(5, 20)
    >>> addresses.shape, addresses.T.tolist() == [list(each) for each in _addresses(5, 0, 20)]
    ((2, 20), True)
    """
    epochs = np.arange(-(-num_segments // SEGMENTS_PER_EPOCH), dtype=np.uint64)
    places = np.arange(SEGMENTS_PER_EPOCH, dtype=np.uint64)
    starts = [
        (start[:, None] + step[:, None] * places).reshape(-1)[:num_segments] & _IN_BLOCK
        for start, step in _ways(key, epochs)
    ]
    return np.stack(starts).astype(np.int64)


def _ways(key: int, epoch: Words) -> tuple[tuple[Words, Words], tuple[Words, Words]]:
    """Return the starting point and the stride of both summands in an epoch."""
    # Even starts for one summand and odd starts for the other, so that no entry is added to itself.
    first: Any = _mix(2 * epoch + key)
    second: Any = _mix(2 * epoch + (key + 1 & _WORD))
    return (
        (first & (BLOCK_SIZE - 2), ((first >> 32) | 1) * SEGMENT_SIZE & _IN_BLOCK),
        (second & (BLOCK_SIZE - 2) | 1, ((second >> 32) | 1) * SEGMENT_SIZE & _IN_BLOCK),
    )


@functools.lru_cache(maxsize=64)
def _kept_ways(key: int, epoch: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return _ways(key, epoch)


def _mix(state: Words) -> Words:
    """Return the output function of SplitMix64 (Steele, Lea, Flood 2014) for one or many states."""
    mixed: Any = state * 0x9E3779B97F4A7C15 & _WORD
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _WORD
    return mixed ^ (mixed >> 31)


def _with_wrap(block: npt.NDArray) -> npt.NDArray:
    wrapped = np.concatenate([block, block[:SEGMENT_SIZE]])
    wrapped.flags.writeable = False
    return wrapped


# Algorithm AS 241 (Wichura 1988), routine PPND16: the normal quantile to about 1e-16.
_CENTRAL = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
"""Numerator and denominator, lowest power first. The tail is valid for sqrt(-log p) <= 5."""


def _normal_quantiles_of_upper_half(count: int) -> npt.NDArray[np.float64]:
    """Return the normal quantiles at (i + 1/2) / count for the upper half of all i, ascending."""
    centred = (np.arange(count // 2) + 0.5) / count  # p - 1/2
    is_tail = centred > 0.425
    quantiles = np.empty_like(centred)
    squared = 0.180625 - centred[~is_tail] * centred[~is_tail]
    quantiles[~is_tail] = centred[~is_tail] * _rational(_CENTRAL, squared)
    distance = np.sqrt(-log(0.5 - centred[is_tail])) - 1.6
    quantiles[is_tail] = _rational(_TAIL, distance)
    return quantiles


def _rational(
    coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    return polynomial(coefficients[0], x) / polynomial(coefficients[1], x)
