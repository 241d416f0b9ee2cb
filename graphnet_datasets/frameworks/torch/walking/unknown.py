"""Values of a walk that only a run would tell, or that a row tells, and tensors too large to be."""

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
"""What torch's messages say of a tensor whose size does not fit in 64 bits."""


class Unknown:
    """Stands for a value that only a run would tell."""


class Guesses:
    """Which values of a walk rest on what a row records, where torch has no rule for its shape.

    A row may record what it likes, so kernels that trust sizes do not take such values.
    """

    def __init__(self) -> None:
        self._indices: set[int] = set()
        self._is_new = False

    def begin(self) -> None:
        """Note that the value under way is taken from the row."""
        self._is_new = True

    def forget(self) -> None:
        """Note that it is known all the same."""
        self._is_new = False

    def end(self, index: int, op: Op) -> None:
        """Note that the value under way is number `index`, which `op` gave."""
        if self._is_new or self.reach(op):
            self._indices.add(index)
        self._is_new = False

    def reach(self, op: Op) -> bool:
        """Tell whether an operand rests on a guess."""
        if not self._indices:
            return False
        operands = (*op.args, *(arg for _, arg in op.kwargs))
        return any(index in self._indices for index in iterate_refs(operands))


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


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep the warnings of a walk to the walk; the run itself gives them again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
