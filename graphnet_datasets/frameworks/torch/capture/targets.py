"""Names and attributes of the nodes of a traced graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def attribute(module: Any, path: str) -> Any:
    """Return the attribute at a dotted path below a module."""
    for part in path.split("."):
        module = getattr(module, part)
    return module


def plain_name(target: Any) -> str:
    """Return the unqualified name of a node's target."""
    return getattr(target, "__name__", "") or str(target)


def qualified_name(target: Any) -> str:
    """Return the qualified name of a node's target for messages."""
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    module = getattr(target, "__module__", None) or ""
    return f"{module}.{plain_name(target)}" if module else plain_name(target)


def items(arg: Any) -> Sequence[Any]:
    """Return the elements of a tuple or list; wrap any other argument in a tuple."""
    return arg if isinstance(arg, tuple | list) else (arg,)
