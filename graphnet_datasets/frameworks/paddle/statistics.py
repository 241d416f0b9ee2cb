"""What is recorded of a tensor's elements: statistics, and the elements themselves where needed.

The rules are those of torch's capture, on NumPy arrays, so that both frameworks record alike.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
import numpy.typing as npt
import paddle

from ...sample import Statistics
from ...sample.vocabulary import Role

MAX_STORED_ELEMENTS = 1024
"""Integer and boolean inputs up to this size are stored; the value is GraphNet's."""

MAX_CONSTANT_ELEMENTS = 2**16
"""Constants of the traced program up to this size are always stored."""

MAX_STRUCTURED_ELEMENTS = 2**20
"""Larger tensors are never looked at for structure."""

STRUCTURED_RATIO = 0.1
"""A tensor is structured (a range, a mask, an index table) if deflate makes it this small."""

_CHUNK = 2**22
"""Elements that are converted to float64 at a time: 32 MiB, whatever the tensor's size."""

_NOT_IN_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def round_significant(value: float, digits: int = 4) -> float:
    """Round to `digits` significant digits, so that sums taken in another order agree.

    >>> round_significant(0.0199963), round_significant(-12345.6)
    (0.02, -12350.0)
    """
    rounded = float(f"{value:.{digits - 1}e}")
    return rounded if math.isfinite(rounded) else value


def measure(tensor: paddle.Tensor) -> Statistics | None:
    """Return mean, standard deviation, minimum and maximum over the finite elements of `tensor`.

    Floating-point figures have four significant digits; the range of integers is exact, since it
    bounds indices. The standard deviation is that of the population. Complex tensors are measured
    as their real and imaginary parts together. None where there is no finite element.

    >>> measure(paddle.to_tensor([1.0, 3.0]))
    Statistics(mean=2.0, std=1.0, min=1.0, max=3.0, is_measured=True)
    """
    values = _as_numbers(tensor)
    if values.dtype.kind == "c":
        values = np.stack([np.real(values), np.imag(values)])
    flat = values.reshape(-1)
    count, mean, squares = 0, 0.0, 0.0
    low, high = math.inf, -math.inf
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK].astype(np.float64)
        chunk = chunk[np.isfinite(chunk)]
        if not chunk.size:
            continue
        chunk_mean = float(chunk.mean())
        # Chan's parallel update of the sum of squared deviations.
        delta = chunk_mean - mean
        squares += float(np.square(chunk - chunk_mean).sum())
        squares += delta * delta * count * chunk.size / (count + chunk.size)
        mean += delta * chunk.size / (count + chunk.size)
        count += chunk.size
        low, high = min(low, float(chunk.min())), max(high, float(chunk.max()))
    if not count:
        return None
    if low == high:  # rounding in the mean must not make a constant look like noise
        mean, squares = low, 0.0
    spread = round_significant(math.sqrt(squares / count))
    if values.dtype.kind in "biu":
        return Statistics(round_significant(mean), spread, low, high)
    limit = float(paddle.finfo(tensor.dtype).max) if tensor.is_floating_point() else math.inf
    return Statistics(
        round_significant(mean),
        spread,
        max(round_significant(low), -limit),  # rounding away from zero may leave the dtype
        min(round_significant(high), limit),
    )


def encode(tensor: paddle.Tensor) -> bytes:
    """Return the elements of `tensor` as little-endian bytes in row-major order."""
    values = tensor.detach().cpu().contiguous()
    if "float8" in str(values.dtype):
        values = values.view(paddle.uint8)
    array = values.numpy()  # bfloat16 comes as uint16 with the same bits
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def elements_to_store(tensor: paddle.Tensor, role: Role) -> bytes | None:
    """Return the elements of `tensor` if drawing it from its statistics would change the graph.

    Stored are the constants of the traced program; integers and booleans that may be indices,
    positions or masks, if they are few or have structure; and masks among floats, which hold
    infinities or the smallest number of their type. Parameters never are.
    """
    count = tensor.size
    if role == "parameter" or count == 0:
        return None
    if role == "constant" and count <= MAX_CONSTANT_ELEMENTS:
        return encode(tensor)
    if count > MAX_STRUCTURED_ELEMENTS:
        return None
    if tensor.is_floating_point() or tensor.is_complex():
        if role != "constant" and not _is_mask(tensor):
            return None
    elif count <= MAX_STORED_ELEMENTS:
        return encode(tensor)
    elif bool((tensor == tensor.reshape([-1])[0]).all()):
        return None  # the range says it all
    return encode(tensor) if _is_structured(tensor) else None


def _as_numbers(tensor: paddle.Tensor) -> npt.NDArray:
    values = tensor.detach().cpu()
    if str(values.dtype).rpartition(".")[2] in _NOT_IN_NUMPY:
        values = values.astype("float32")
    return values.numpy()


def _is_structured(tensor: paddle.Tensor) -> bool:
    """Tell whether the elements, or for integers the steps between them, repeat themselves."""
    ways = [encode(tensor)]
    array = _as_numbers(tensor)
    if array.dtype.kind in "iu":
        ways.append(np.diff(array.reshape(-1).astype(np.int64)).tobytes())
    return any(len(zlib.compress(way, 1)) <= STRUCTURED_RATIO * len(way) for way in ways)


def _is_mask(tensor: paddle.Tensor) -> bool:
    if tensor.is_complex():
        return False
    values = _as_numbers(tensor).astype(np.float64)
    return bool((np.abs(values) > 1e4).any() or not np.isfinite(values).all())
