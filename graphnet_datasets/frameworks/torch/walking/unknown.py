"""Values known only at run time, values guessed from recorded shapes, and oversized tensors."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from ....errors import GraphNetError, MemoryLimitError
from ....sample import Op
from ....sample.arguments import iterate_refs
from ..tensors import dtype_of

_OVERFLOWS = ("overflow", "Storage size calculation", "storage size", "invalid memory size")
"""Fragments of torch's messages about tensors whose size does not fit in 64 bits."""


class Unknown:
    """Placeholder for a value that is known only at run time."""


class Guesses:
    """Tracks values whose shape is taken from the sample because torch has no shape rule.

    Recorded shapes are not trustworthy, so kernels without size checks must not use such values.
    """

    def __init__(self) -> None:
        self._indices: set[int] = set()
        self._is_new = False

    def begin(self) -> None:
        """Mark the current value as guessed from its recorded shape."""
        self._is_new = True

    def forget(self) -> None:
        """Remove the mark of the current value."""
        self._is_new = False

    def end(self, index: int, op: Op) -> None:
        """Assign the current value, the result of `op`, to `index`."""
        if self._is_new or self.reach(op):
            self._indices.add(index)
        self._is_new = False

    def reach(self, op: Op) -> bool:
        """Return whether an operand depends on a guess."""
        if not self._indices:
            return False
        operands = (*op.args, *(arg for _, arg in op.kwargs))
        return any(index in self._indices for index in iterate_refs(operands))


def empty(shape: tuple[int, ...], stride: tuple[int, ...] | None, dtype: str) -> Any:
    """Return a fake tensor, or `Unknown` if torch cannot create it (e.g. for quantized dtypes)."""
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
    """Raise a `MemoryLimitError` if a torch error is about a tensor of more than 2**63 bytes.

    Raises:
        MemoryLimitError: If `error` is such an error.
    """
    if any(sign in str(error) for sign in _OVERFLOWS):
        raise MemoryLimitError(
            f"The call needs more than 2**63 bytes ({error}). Skip the sample."
        ) from error


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings during a walk; the run itself emits them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
