"""Names of packages that are imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .collector import not_collecting


def attributes_on_first_use(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that imports each name when it is first used.

    Args:
        package: `__name__` of the package.
        module_of: the module of each name, relative to the package.
    """

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"The module `{package}` has no attribute `{name}`")
        with not_collecting():
            value = getattr(importlib.import_module(f".{module_of[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
