"""Statistics of Paddle tensors, and their elements where statistics do not suffice.

Tensors are measured as NumPy arrays, by the rules of `frameworks.moments`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import paddle

from ...sample import Statistics
from ...sample.vocabulary import Role
from ..moments import (
    CHUNK,
    MASK_MAGNITUDE,
    Moments,
    is_structured,
    must_store,
)

_NOT_IN_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def measure(tensor: paddle.Tensor) -> Statistics | None:
    """Return the mean, standard deviation, minimum and maximum of the finite elements of `tensor`.

    Floating-point statistics are rounded to four significant digits. The range of integers is
    exact, since it bounds indices. The standard deviation is the population standard deviation. The
    real and imaginary parts of complex tensors are measured together. Returns None if no element is
    finite.

    >>> measure(paddle.to_tensor([1.0, 3.0]))
    Statistics(mean=2.0, std=1.0, min=1.0, max=3.0, is_measured=True)
    """
    values = as_numbers(tensor)
    if values.dtype.kind == "c":
        values = np.stack([np.real(values), np.imag(values)])
    flat = values.reshape(-1)
    moments = Moments()
    for start in range(0, flat.size, CHUNK):
        chunk = flat[start : start + CHUNK].astype(np.float64)
        chunk = chunk[np.isfinite(chunk)]
        if not chunk.size:
            continue
        mean = float(chunk.mean())
        moments.add(
            chunk.size,
            mean=mean,
            squares=float(np.square(chunk - mean).sum()),
            low=float(chunk.min()),
            high=float(chunk.max()),
        )
    if values.dtype.kind in "biu":
        return moments.statistics(limit=None)
    limit = float(paddle.finfo(tensor.dtype).max) if tensor.is_floating_point() else math.inf
    return moments.statistics(limit)


def encode(tensor: paddle.Tensor) -> bytes:
    """Return the elements of `tensor` as little-endian bytes in row-major order."""
    values = tensor.detach().cpu().contiguous()
    if "float8" in str(values.dtype):
        values = values.view(paddle.uint8)
    array = values.numpy()  # NumPy receives bfloat16 as uint16 with the same bits
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def elements_to_store(tensor: paddle.Tensor, role: Role) -> bytes | None:
    """Return the elements of `tensor` if random values would change the graph's behavior, else
    None.

    The criteria are those of `frameworks.moments.must_store`.
    """
    is_stored = must_store(
        role,
        tensor.size,
        is_inexact=tensor.is_floating_point() or tensor.is_complex(),
        is_mask=lambda: _is_mask(tensor),
        is_uniform=lambda: bool((tensor == tensor.reshape([-1])[0]).all()),
        is_structured=lambda: _is_structured(tensor),
    )
    return encode(tensor) if is_stored else None


def as_numbers(tensor: paddle.Tensor) -> npt.NDArray:
    """Return the elements as an array; floating-point dtypes that NumPy lacks become float32."""
    values = tensor.detach().cpu()
    if str(values.dtype).rpartition(".")[2] in _NOT_IN_NUMPY:
        values = values.astype("float32")
    return values.numpy()


def _is_structured(tensor: paddle.Tensor) -> bool:
    """Return whether the elements, or the differences of consecutive integers, form a repeating
    pattern."""
    encodings = [encode(tensor)]
    array = as_numbers(tensor)
    if array.dtype.kind in "iu":
        encodings.append(np.diff(array.reshape(-1).astype(np.int64)).tobytes())
    return is_structured(encodings)


def _is_mask(tensor: paddle.Tensor) -> bool:
    if tensor.is_complex():
        return False
    values = as_numbers(tensor).astype(np.float64)
    return bool((np.abs(values) > MASK_MAGNITUDE).any() or not np.isfinite(values).all())
