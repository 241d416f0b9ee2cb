"""Models of timm: a name of its registry and arguments of `timm.create_model`."""

from __future__ import annotations

import torch

from ..catalog import Entry
from .imports import optional
from .torchvision import declare_operators


def preload() -> None:
    """Import the registry of models."""
    declare_operators()
    optional("timm")


def build(entry: Entry) -> torch.nn.Module:
    """Return the named model with random weights."""
    declare_operators()
    return optional("timm").create_model(entry.builder, pretrained=False, **entry.overrides)
