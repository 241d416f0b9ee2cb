"""The backbones of PaddleClas: their names, parsed from its source, and their imports.

The distribution is installed without its dependencies (`pip install --no-deps paddleclas==2.6.0`),
which are pinned to old versions and not used by the backbones. Its top-level package imports all of
them, so the parent packages of the backbones are created without executing them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from graphnet_datasets.errors import MissingExtraError

DISTRIBUTION = "paddleclas"
PACKAGE = "ppcls"
BACKBONES = "ppcls.arch.backbone"
LOGGER = "ppcls.utils.logger"


def folder() -> Path:
    """Return the folder of the package `ppcls`.

    Raises:
        MissingExtraError: PaddleClas is not installed.
    """
    spec = importlib.util.find_spec(DISTRIBUTION)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(DISTRIBUTION, "catalogs", "Capturing models of PaddleClas")
    return Path(spec.submodule_search_locations[0]) / PACKAGE


@functools.cache
def names() -> tuple[str, ...]:
    """Return the sorted names of all backbones without importing them."""
    tree = ast.parse((folder() / "arch" / "backbone" / "__init__.py").read_text())
    return tuple(
        sorted(
            {
                alias.name
                for node in tree.body
                if isinstance(node, ast.ImportFrom) and node.level
                for alias in node.names
            }
        )
    )


def backbone(name: str) -> Callable[..., Any]:
    """Return the function or class of PaddleClas that builds a backbone.

    Raises:
        KeyError: PaddleClas has no backbone of that name.
        MissingExtraError: PaddleClas is not installed.
    """
    if name not in names():
        raise KeyError(name)
    root = folder()
    for package, path in ((PACKAGE, root), (f"{PACKAGE}.arch", root / "arch")):
        if package not in sys.modules:
            module = ModuleType(package)
            module.__path__ = [str(path)]
            sys.modules[package] = module
    backbones = importlib.import_module(BACKBONES)
    # Some backbones log missing fused kernels to a logger that the top-level package creates.
    importlib.import_module(LOGGER).init_logger(log_level=logging.ERROR)
    return getattr(backbones, name)
