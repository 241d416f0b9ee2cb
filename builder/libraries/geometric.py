"""Models of PyTorch Geometric: a class of `torch_geometric.nn.models` and its arguments."""

from __future__ import annotations

import torch

from ..catalog import CatalogError, Entry
from .imports import optional


def preload() -> None:
    """Import the models."""
    optional("torch_geometric.nn")


def build(entry: Entry) -> torch.nn.Module:
    """Return a model of the named class, or of a convolution with that name."""
    model_class = getattr(optional("torch_geometric.nn"), entry.builder, None)
    if not isinstance(model_class, type) or not issubclass(model_class, torch.nn.Module):
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is not a model class.")
    return model_class(**entry.overrides)
