"""Values of a walk that only a run would tell, and tensors too large to be."""

from __future__ import annotations

from typing import Any

import torch

from ....errors import GraphNetError, MemoryLimitError
from ..tensors import dtype_of

_OVERFLOWS = ("overflow", "Storage size calculation", "storage size", "invalid memory size")
"""What torch's messages say of a tensor whose size does not fit in 64 bits."""


class Unknown:
    """Stands for a value that only a run would tell."""


def empty(shape: tuple[int, ...], stride: tuple[int, ...] | None, dtype: str) -> Any:
    """Return a fake tensor, or `Unknown` where torch has none such (of a quantized dtype, say)."""
    try:
        if stride is None:
            return torch.empty(shape, dtype=dtype_of(dtype))
        return torch.empty_strided(shape, stride, dtype=dtype_of(dtype))
    except GraphNetError:
        raise
    except RuntimeError as error:
        refuse_overflow(error)
        return Unknown()


def refuse_overflow(error: Exception) -> None:
    """Raise our error for torch's of a tensor that would take more than 2**63 bytes.

    Raises:
        MemoryLimitError: `error` is one.
    """
    if any(sign in str(error) for sign in _OVERFLOWS):
        raise MemoryLimitError(f"needs more than 2**63 bytes: {error}") from error
