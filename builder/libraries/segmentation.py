"""Models of segmentation-models-pytorch: an architecture, and its encoder in the overrides."""

from __future__ import annotations

import torch

from ..catalog import Entry
from .imports import optional
from .torchvision import declare_operators


def preload() -> None:
    """Import the architectures."""
    declare_operators()
    optional("segmentation_models_pytorch")


def build(entry: Entry) -> torch.nn.Module:
    """Return the named architecture with random weights."""
    declare_operators()
    return optional("segmentation_models_pytorch").create_model(
        entry.builder, encoder_weights=None, **entry.overrides
    )
