"""Conversion of walk results to the `Value`s that a sample records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ....sample import Value
from ....sample.vocabulary import ITEM_SIZE_BYTES
from .forms import PLAIN_DTYPES, Form, Scalar
from .live_memory import tensors_in

_NAMES = {dtype: str(dtype).removeprefix("torch.") for dtype in PLAIN_DTYPES}


def describe(result: Any) -> Iterator[Value]:
    """Yield a `Value` for each tensor of a result, without sizes known only at run time."""
    for tensor in tensors_in(result):
        if type(tensor) is Form:
            strides = None if tensor.is_contiguous else tensor.strides
            yield Value(_NAMES.get(tensor.dtype), tensor.shape, strides)
            continue
        if type(tensor) is Scalar:
            yield Value(_NAMES[tensor.dtype], ())
            continue
        name = str(tensor.dtype).removeprefix("torch.")
        dtype = name if name in ITEM_SIZE_BYTES else None
        if any(isinstance(size, torch.SymInt) for size in tensor.shape):
            yield Value(dtype)
            continue
        strided = tensor.layout == torch.strided
        contiguous = not strided or tensor.is_contiguous()
        yield Value(dtype, tuple(tensor.shape), None if contiguous else tuple(tensor.stride()))
