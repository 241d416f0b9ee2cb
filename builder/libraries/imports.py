"""Imports of libraries that may not be installed."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Literal, get_args

import torch

from graphnet_datasets.errors import GraphNetError

from ..catalog import CatalogError, Entry

Optional = Literal[
    "asteroid.models",
    "diffusers",
    "kornia",
    "monai.networks.nets",
    "neuralop.models",
    "pytorchcv",
    "pytorchcv.models",
    "segmentation_models_pytorch",
    "spandrel.architectures",
    "speechbrain.lobes.models",
    "tensorly.plugins",
    "timm",
    "torch_geometric.nn",
    "torch_rechub.basic",
    "torch_rechub.models",
    "torchao.quantization",
    "torchao.utils",
    "torchaudio.models",
    "torchvision",
    "ultralytics",
    "ultralytics.nn.tasks",
    "vit_pytorch",
]


def optional(name: Optional) -> Any:
    """Import a library by its name, untyped, because the type checker runs without the library.

    Raises:
        GraphNetError: it is not a library of the catalogs.
    """
    if name not in get_args(Optional):
        raise GraphNetError(f"`{name}` is not a library of the catalogs: {get_args(Optional)}.")
    return importlib.import_module(name)


def submodule(package: Optional, name: str) -> Any:
    """Import a module of a library by its dotted name.

    Raises:
        GraphNetError: the library has no such module.
    """
    module, path = optional(package), str(package)
    for part in name.split("."):
        if part not in modules_in(module):
            raise GraphNetError(f"`{package}` has no module `{name}`.")
        path = f"{path}.{part}"
        module = importlib.import_module(path)
    return module


def modules_in(package: Any) -> set[str]:
    """Return the names of the modules directly in a package; empty for a module."""
    return {module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))}


def model_class(
    module: Any, name: str, entry: Entry, base: type[torch.nn.Module] = torch.nn.Module
) -> Any:
    """Return a model class of a library's module by its name.

    Raises:
        CatalogError: the class does not exist or is not a subclass of `base`.
    """
    model_type = getattr(module, name, None)
    if not isinstance(model_type, type) or not issubclass(model_type, base):
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is not a model class.")
    return model_type
