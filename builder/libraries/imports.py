"""Imports of libraries that are not there in every environment."""

from __future__ import annotations

import importlib
from typing import Any, Literal, get_args

from graphnet_datasets.errors import GraphNetError

Optional = Literal[
    "diffusers",
    "segmentation_models_pytorch",
    "timm",
    "torch_geometric.nn",
    "torchaudio.models",
    "torchvision",
    "ultralytics",
    "ultralytics.nn.tasks",
]


def optional(name: Optional) -> Any:
    """Import a library by its name, untyped: the type checker runs where it is not installed.

    Raises:
        GraphNetError: it is not one of those that catalogs may name.
    """
    if name not in get_args(Optional):
        raise GraphNetError(f"`{name}` is not a library of the catalogs: {get_args(Optional)}.")
    return importlib.import_module(name)
