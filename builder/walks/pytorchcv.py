"""Walks pytorchcv's registry of models: the largest ones of each architecture file.

The registry has one file per architecture. It lists a network once for each training dataset, with
different numbers of classes; the walk takes one of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..libraries import modules
from ..libraries.imports import submodule
from .workloads import vision_line

MODELS = modules.PACKAGES["pytorchcv"]

OF_EACH = 2
"""Number of models per architecture: the largest, and one in the middle."""

LEFT_OUT = {
    "condensenet": "breaks at each of its layers",
    "fractalnet_cifar": "draws its columns in NumPy",
    "jasper": "imports a library of sounds",
    "ntsnet_cub": "suppresses boxes in NumPy",
    "nvpattexp": "takes parts of clips that no document describes",
    "propainter": "takes lists of frames",
    "quartznet": "imports a library of sounds",
    "revnet": "empties the storage of tensors",
    "superpointnet": "as many points as the picture has",
    "visemenet": "takes parts of clips that no document describes",
    "voca": "takes parts of clips that no document describes",
}
"""Prefixes of files whose models are excluded, with the reason."""

_DATA = re.compile(r"_(cifar100?|svhn|cub|voc|coco|ade20k|cityscapes)\Z")
_INPUTS = {
    "raft": ("normal(1,3,440,1024)", "normal(1,3,440,1024)"),
    "nasnet_6a4032": ("normal(1,3,331,331)",),
    "pfpcnet": ("normal(1,1,320,240)",),
    "prnet": ("normal(1,3,256,256)",),
}
"""Inputs of files and models without an image size."""


def walk() -> Iterator[str]:
    """Yield catalog lines: the largest models of each file, at their own image sizes."""
    modules.preload_of("pytorchcv")()
    registry: dict[str, Any] = submodule("pytorchcv", "model_provider")._models
    by_file: dict[str, list[str]] = {}
    for name, factory in registry.items():
        by_file.setdefault(factory.__module__.rpartition(".")[2], []).append(name)
    for file, names in by_file.items():
        if not file.startswith(tuple(LEFT_OUT)):
            yield from (_line(file, name, registry[name]) for name in _chosen(names))


def _chosen(names: list[str]) -> list[str]:
    """Return the last of the names, which is the largest model, and some before it.

    >>> _chosen(["net20_cifar10", "net20_cifar100", "net56_cifar10", "net56_svhn"])
    ['net56_cifar10', 'net20_cifar10']
    """
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(_DATA.sub("", name), name)
    distinct = list(first.values())
    wanted = min(OF_EACH, len(distinct))
    return [distinct[-1 - place * len(distinct) // wanted] for place in range(wanted)]


def _line(file: str, name: str, factory: Any) -> str:
    texts = _INPUTS.get(name) or _INPUTS.get(file) or (_picture(submodule(MODELS, file), factory),)
    inputs = {f"_{place}": text for place, text in enumerate(texts)}
    return vision_line(f"pytorchcv/{name}", "pytorchcv", f"{file}.{name}", "", inputs)


def _picture(module: ModuleType, factory: Any) -> str:
    """Return an image input of the size of a factory, or else of the classes in its file."""
    networks = [
        value for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]  # fmt: skip
    for function in (factory, *networks):
        parameter = inspect.signature(function).parameters.get("in_size")
        if parameter is not None and parameter.default is not parameter.empty:
            height, width = parameter.default
            return f"normal(1,3,{height},{width})"
    return "normal(1,3,224,224)"
