"""One operator table of torch's ONNX exporter, shared by a process and its forks.

`torch.onnx.export` rebuilds the table for each graph: it reads and parses the source of five
hundred functions, which takes longer than exporting a small graph.
"""

from __future__ import annotations

import importlib
from typing import Any


def keep_registry() -> bool:
    """Make the exporter copy one cached table; return whether this torch version supports that.

    The entries are the exporter's own. Each export receives its own lists, so that registrations
    stay local to that export. If torch's internals differ, nothing changes.
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
    tables: dict[Any, Any] = {}

    def from_torchlib(*args: Any, **kwargs: Any) -> Any:
        key = (args, tuple(sorted(kwargs.items())))
        if key not in tables:
            tables[key] = make(*args, **kwargs)
        registry = kind()
        vars(registry).update(vars(tables[key]))
        registry.functions = {
            name: list(functions) for name, functions in tables[key].functions.items()
        }
        return registry

    from_torchlib.keeps = True  # type: ignore[attr-defined]
    kind.from_torchlib = staticmethod(from_torchlib)
    return True
