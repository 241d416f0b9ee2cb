"""Operands whose strides a kernel ignores, compared before the kernel may run.

Some kernels of ATen read as many elements as a shape has, one behind the other, whatever the
strides are. A row may record a stride of 0, so that a tensor of a million elements lies in four
bytes, and the kernel reads the memory behind them. `benchmarks/fuzz_operators.py` finds such
kernels: it ends each storage at a page that cannot be read.
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
"""Packets that copy their operand unless they reduce along one axis."""

ROW_BLIND = OperatorNames("row_blind")


def ignores_strides(operator: Operator) -> bool:
    """Tell whether the kernel of an operator ignores strides of its operands.

    >>> from ..operators import lookup
    >>> ignores_strides(lookup("torch.ops.aten.median.dim")), ignores_strides(lookup("torch.add"))
    (True, False)
    """
    return operator.packet_name in STRIDE_BLIND or operator.packet_name in ROW_BLIND


def check_strides(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check that no two elements of an operand share memory where its kernel ignores strides.

    Raises:
        MaterializeError: two elements do.

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
        # The kernels of attention return their log-sum-exp of three axes in an order of their own.
        has_rows = is_row_blind and tensor.dim() > 3
        if not (_has_rows(tensor) if has_rows else has_own_elements(tensor)):
            raise MaterializeError(
                f"Operand {name} has shape {list(tensor.shape)} and stride "
                f"{list(tensor.stride())}, so that elements share memory, and the kernel ignores "
                "strides. Make the operand contiguous first."
            )


def has_own_elements(tensor: torch.Tensor) -> bool:
    """Tell whether every element of a tensor has a place in memory of its own.

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
    """Tell whether the last axis lies in memory element by element, and rows do not overlap."""
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
    """Tell whether sizes and strides are known before the graph runs."""
    return all(type(number) is int for number in (*tensor.shape, *tensor.stride()))


def _lies_in_order(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor is contiguous whatever its sizes will be."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    step: Any = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if not statically_known_true(stride == step):
            return False
        step = step * size
    return True
