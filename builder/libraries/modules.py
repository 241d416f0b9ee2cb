"""Models of libraries without a registry: `module.Class` or `module.function`, and arguments.

The module is in the package that `PACKAGES` names, or in a subpackage: `module.module.Class`. A
factory can be a method of a class: `module.Class.function`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..catalog import CatalogError, Entry
from . import mends, torchaudio
from .imports import Optional, modules_in, optional, submodule
from .torchvision import declare_operators

PACKAGES: dict[str, Optional] = {
    "asteroid": "asteroid.models",
    "kornia": "kornia",
    "monai": "monai.networks.nets",
    "neuralop": "neuralop.models",
    "pytorchcv": "pytorchcv.models",
    "spandrel": "spandrel.architectures",
    "speechbrain": "speechbrain.lobes.models",
    "vit_pytorch": "vit_pytorch",
}
"""The package of each library in which its models' modules are."""


def preload_of(library: str) -> Callable[[], None]:
    """Return a function that imports a library's package before the first model is built."""
    return functools.partial(_preload, PACKAGES[library])


def _preload(package: Optional) -> None:
    declare_operators()
    torchaudio.preload_if_installed()
    optional(package)
    mends.mend(package)


def build(entry: Entry) -> torch.nn.Module:
    """Return the model that the named class or function builds from the overrides.

    Raises:
        CatalogError: the builder is not `module.name`, or does not build a module.
    """
    _preload(PACKAGES[entry.library])
    factory = _found(PACKAGES[entry.library], entry.builder)
    model = factory(**entry.overrides) if callable(factory) else None
    if not isinstance(model, torch.nn.Module):
        raise CatalogError(
            f"`{entry.name}` names `{entry.builder}`, which is not a model of {entry.library}. "
            "Write `module.Class` or `module.function`."
        )
    return model


def _found(package: Optional, builder: str) -> Any:
    """Resolve a dotted name to a module or an attribute; return None if it does not exist."""
    module, *names = builder.split(".")
    candidate = submodule(package, module)
    while names and names[0] in modules_in(candidate):
        module = f"{module}.{names.pop(0)}"
        candidate = submodule(package, module)
    for name in names:
        candidate = getattr(candidate, name, None)
    return candidate
