"""Operand checks for kernels that ignore strides.

Some ATen kernels read as many consecutive elements as the shape has, whatever the strides are. With
a recorded stride of 0, a tensor of a million elements takes four bytes, and the kernel would read
out of bounds. `benchmarks/fuzz_operators.py` finds such kernels by placing each storage before an
unreadable page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ....errors import MaterializeError
from ....operators import OperatorNames
from ..operators import Operator
from ..operators.words import words

STRIDE_BLIND = OperatorNames("stride_blind")

_BY_AXIS = words("median nanmedian")
"""Operators that copy their operand unless they reduce along one axis."""

ROW_BLIND = OperatorNames("row_blind")


def ignores_strides(operator: Operator) -> bool:
    """Return whether an operator's kernel ignores the strides of its operands.

    >>> from ..operators import lookup
    >>> ignores_strides(lookup("torch.ops.aten.median.dim")), ignores_strides(lookup("torch.add"))
    (True, False)
    """
    return operator.packet_name in STRIDE_BLIND or operator.packet_name in ROW_BLIND


def check_strides(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check that operands of a stride-ignoring kernel have no overlapping elements.

    Raises:
        MaterializeError: If two elements share memory.

    >>> from ..operators import lookup
    >>> check_strides(lookup("torch.median"), (torch.ones(3), 0), {})
    >>> check_strides(lookup("torch.median"), (torch.ones(1).expand(3), 0), {})
    Traceback (most recent call last):
    graphnet_datasets.errors.MaterializeError: Operand 0 has shape [3] and stride [0], so that \
elements share memory, and the kernel ignores strides. Make the operand contiguous first.
    """
    if operator.packet_name in _BY_AXIS and len(args) + len(kwargs) < 2:
        return
    is_row_blind = operator.packet_name in ROW_BLIND
    for name, tensor in (*enumerate(args), *kwargs.items()):
        if not isinstance(tensor, torch.Tensor):
            continue
        # Attention kernels return a three-dimensional log-sum-exp in a memory order of their own.
        has_rows = is_row_blind and tensor.dim() > 3
        if not (_has_rows(tensor) if has_rows else has_own_elements(tensor)):
            raise MaterializeError(
                f"Operand {name} has shape {list(tensor.shape)} and stride "
                f"{list(tensor.stride())}, so that elements share memory, and the kernel ignores "
                "strides. Make the operand contiguous first."
            )


def has_own_elements(tensor: torch.Tensor) -> bool:
    """Return whether no two elements of a tensor share memory.

    >>> has_own_elements(torch.ones(3, 4).T), has_own_elements(torch.ones(3, 1).expand(3, 4))
    (True, False)
    """
    if tensor.layout is not torch.strided:
        return False
    if not _is_settled(tensor):
        return _lies_in_order(tensor)
    axes = zip(tensor.stride(), tensor.shape, strict=True)
    reach = 1
    for step, size in sorted((step, size) for step, size in axes if size != 1):
        if size == 0:
            return True
        if step < reach:
            return False
        reach = step * (size - 1) + reach
    return True


def _has_rows(tensor: torch.Tensor) -> bool:
    """Return whether the last axis has stride 1 and rows do not overlap."""
    if tensor.layout is not torch.strided or tensor.dim() == 0:
        return tensor.layout is torch.strided
    if not _is_settled(tensor):
        return _lies_in_order(tensor)
    if 0 in tensor.shape:
        return True
    *_, length = tensor.shape
    is_row = length == 1 or tensor.stride(-1) == 1
    is_apart = tensor.dim() == 1 or tensor.shape[-2] == 1 or tensor.stride(-2) >= length
    return is_row and is_apart


def _is_settled(tensor: torch.Tensor) -> bool:
    """Return whether sizes and strides are known before the graph runs."""
    return all(type(number) is int for number in (*tensor.shape, *tensor.stride()))


def _lies_in_order(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is contiguous for all values of its symbolic sizes."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    step: Any = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if not statically_known_true(stride == step):
            return False
        step = step * size
    return True
