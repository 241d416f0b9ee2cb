"""Memory that kernels may need to copy expanded operands.

With a stride of 0, a tensor can have gigabytes of elements in four bytes of storage. Kernels that
follow strides read it in place. Others make it contiguous, some more than once. Which kernels copy
depends on the torch version, so every operator is assumed to copy such an operand once, except for
views and pointwise operators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from ....operators import OperatorNames, OperatorValues
from ..operators import Operator
from .forms import Form
from .live_memory import tensors_in

_READING = OperatorNames("reads_all")

_FOLLOWING = OperatorNames("follows_strides")

_REDUCING = OperatorNames("reduces_one")
_RULES = OperatorValues("rule")


def copied_bytes(operator: Operator, operands: Sequence[Any]) -> int:
    """Return the bytes that a call may need for copies of its operands.

    >>> from ..operators import lookup
    >>> wide = Form((1000, 1000), (0, 0), torch.float32)
    >>> copied_bytes(lookup("torch.mode"), [wide]), copied_bytes(lookup("torch.add"), [wide, wide])
    (3999996, 0)
    """
    total = 0
    for tensor in tensors_in(operands):
        total += _missing_bytes(tensor)
    return 0 if total == 0 or follows_strides(operator) else total


@functools.lru_cache(maxsize=16384)
def follows_strides(operator: Operator) -> bool:
    """Return whether an operator's kernel reads its operands in place.

    >>> from ..operators import lookup
    >>> [follows_strides(lookup(f"torch.Tensor.{name}")) for name in ("mul", "view", "size", "mm")]
    [True, True, True, False]
    >>> follows_strides(lookup("torch.max"))  # pointwise of two tensors, a reduction of one
    False
    """
    namespace, _, last = operator.name.rpartition(".")
    is_listed = operator.packet_name.rstrip("_") in _FOLLOWING
    is_reducing = operator.packet_name in _REDUCING
    if operator.kind == "attribute" or is_listed:
        return True
    if _RULES.get(operator.name, "").startswith("element.") and not is_reducing:
        return True
    if namespace == "operator":
        return last not in ("matmul", "imatmul")
    packet = getattr(torch.ops.aten, operator.packet_name, None)
    if packet is None or operator.packet_name in _READING:
        return operator.is_state
    names = [name for name in packet.overloads() if "out" not in name and "names" not in name]
    return all(_is_pointwise_or_view(getattr(packet, name)) for name in names)


def _is_pointwise_or_view(overload: Any) -> bool:
    """Return whether an overload is pointwise, returns views, or returns no tensors."""
    returns = overload._schema.returns
    if torch.Tag.pointwise in overload.tags or not any("Tensor" in str(a.type) for a in returns):
        return True
    return any(a.alias_info is not None and not a.alias_info.is_write for a in returns)


def _missing_bytes(tensor: Any) -> int:
    """Return how many bytes a contiguous copy would exceed the tensor's storage."""
    if type(tensor) is Form:
        if tensor.is_contiguous:
            return 0
        return max(0, math.prod(tensor.shape) * tensor.dtype.itemsize - tensor.storage.num_bytes)
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
        return 0
    try:
        needed, available = tensor.numel() * tensor.itemsize, tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):
        return 0
    is_known = type(needed) is int and type(available) is int
    return max(0, needed - available) if is_known else 0
