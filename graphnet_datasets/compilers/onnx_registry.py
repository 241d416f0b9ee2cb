"""The table of operators of torch's exporter to ONNX, made once for a process and its forks.

`torch.onnx.export` makes that table anew for each graph: it reads the source text of five hundred
functions and parses it, which takes longer than exporting a small graph.
"""

from __future__ import annotations

import importlib
from typing import Any


def keep_registry() -> bool:
    """Have the exporter take copies of one table; return whether this version of torch lets us.

    The entries are the exporter's own, and each export gets lists of its own, so that what one
    registers no other sees. Where torch is built otherwise, nothing is changed.
    """
    try:
        registration = importlib.import_module("torch.onnx._internal.exporter._registration")
        kind = registration.ONNXRegistry
        make = kind.from_torchlib
        is_known = isinstance(kind().functions, dict)
    except (ImportError, AttributeError, TypeError):
        return False
    if getattr(make, "keeps", False) or not is_known:
        return is_known
    kept: dict[Any, Any] = {}

    def from_torchlib(*args: Any, **kwargs: Any) -> Any:
        key = (args, tuple(sorted(kwargs.items())))
        if key not in kept:
            kept[key] = make(*args, **kwargs)
        registry = kind()
        vars(registry).update(vars(kept[key]))
        registry.functions = {name: list(each) for name, each in kept[key].functions.items()}
        return registry

    from_torchlib.keeps = True  # type: ignore[attr-defined]
    kind.from_torchlib = staticmethod(from_torchlib)
    return True
