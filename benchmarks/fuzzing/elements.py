"""The elements of a tensor of a call, as a NumPy array."""

from __future__ import annotations

import math
import random

import numpy as np
import numpy.typing as npt

from .specs import Tensor

NUMPY = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": np.float32,
    "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8,
    "bool": np.bool_, "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip
"""The NumPy dtype in which elements are made; bfloat16 is converted by the framework."""


def elements(spec: Tensor, chance: random.Random) -> npt.NDArray:
    """Return the elements that `spec` asks for, row-major.

    >>> elements(Tensor("int8", (3,), "least"), random.Random(0)).tolist()
    [-128, -128, -128]
    """
    dtype = np.dtype(NUMPY[spec.dtype])
    size = math.prod(spec.shape)
    if spec.fill == "data" and len(spec.data) == size:
        with np.errstate(all="ignore"):
            return (
                np.array(spec.data, object).astype(_wide(dtype)).astype(dtype).reshape(spec.shape)
            )
    generator = np.random.default_rng(chance.getrandbits(32))
    with np.errstate(all="ignore"):
        return _fill(spec.fill, size, dtype, generator).reshape(spec.shape)


def _wide(dtype: np.dtype) -> type:
    return {"i": object, "u": object, "b": bool, "c": complex}.get(dtype.kind, float)


def _fill(fill: str, size: int, dtype: np.dtype, generator: np.random.Generator) -> npt.NDArray:
    is_integer = dtype.kind in "iu"
    if fill == "ones":
        return np.ones(size, dtype)
    if fill == "zeros":
        return np.zeros(size, dtype)
    if fill == "count":
        return np.arange(size).astype(dtype)
    if fill == "negative":
        return (-generator.integers(1, 9, size)).astype(dtype)
    if fill == "huge":
        if is_integer:
            return generator.choice(np.array([np.iinfo(dtype).max, 100, 1000]), size).astype(dtype)
        return np.full(size, 1e30).astype(dtype)
    if fill == "least":
        return np.full(size, np.iinfo(dtype).min if is_integer else -1e30).astype(dtype)
    if fill == "nan" and not is_integer and dtype.kind != "b":
        return np.full(size, np.nan).astype(dtype)
    if fill == "normal" and not is_integer:
        return generator.standard_normal(size).astype(dtype)
    return generator.integers(0, 3, size).astype(dtype)
