"""What the nodes of a traced graph call and hold, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def attribute(module: Any, path: str) -> Any:
    """Return what stands at a dotted path below a module."""
    for part in path.split("."):
        module = getattr(module, part)
    return module


def plain_name(target: Any) -> str:
    """Return the last part of the name of what a node calls."""
    return getattr(target, "__name__", "") or str(target)


def qualified_name(target: Any) -> str:
    """Return the name of what a node calls, for people."""
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    module = getattr(target, "__module__", None) or ""
    return f"{module}.{plain_name(target)}" if module else plain_name(target)


def items(arg: Any) -> Sequence[Any]:
    """Return the elements of an argument that is several, or one of its own."""
    return arg if isinstance(arg, tuple | list) else (arg,)
