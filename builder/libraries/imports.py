"""Imports of libraries that are not there in every environment."""

from __future__ import annotations

import importlib
from typing import Any, Literal

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
    """Import a library by its name, untyped: the type checker runs where it is not installed."""
    return importlib.import_module(name)
