"""Models of PyTorch Geometric: a class of `torch_geometric.nn.models` and its arguments."""

from __future__ import annotations

import torch

from ..catalog import Entry
from .imports import model_class, optional


def preload() -> None:
    """Import the models."""
    optional("torch_geometric.nn")


def build(entry: Entry) -> torch.nn.Module:
    """Return a model of the named class, or of a convolution with that name."""
    model_type = model_class(optional("torch_geometric.nn"), entry.builder, entry)
    return model_type(**entry.overrides)
