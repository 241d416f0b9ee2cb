"""Recommenders of torch-rechub: `room.Class`, and arguments in which features are tuples.

A tuple of one element is a number (its name), one of three an identifier (name, vocabulary, width),
one of four or five a history of identifiers (with how it is pooled, and whose table it shares).
"""

from __future__ import annotations

from typing import Any

import torch

from ..catalog import Entry
from .imports import model_class, optional, submodule

PACKAGE = "torch_rechub.models"


def preload() -> None:
    """Import the models."""
    optional(PACKAGE)


class Fields(torch.nn.Module):
    """A recommender called with its fields by name, where it takes a dictionary of them."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    @property
    def called_model(self) -> torch.nn.Module:
        """The model itself, whose source is recorded with the graph."""
        return self.model

    def forward(self, **fields: torch.Tensor) -> Any:
        return self.model(fields)


def build(entry: Entry) -> torch.nn.Module:
    """Return the named model with features made of the tuples in its arguments."""
    room, _, name = entry.builder.partition(".")
    model_type = model_class(submodule(PACKAGE, room), name, entry)
    return Fields(model_type(**{key: _made(value) for key, value in entry.overrides.items()}))


def _made(value: Any) -> Any:
    """Return a value with tuples replaced by features."""
    if isinstance(value, list):
        return [_made(item) for item in value]
    if not isinstance(value, tuple):
        return value
    features = submodule("torch_rechub.basic", "features")
    name, *rest = value
    if not rest:
        return features.DenseFeature(name)
    if len(rest) == 2:
        return features.SparseFeature(name, *rest)
    vocabulary, width, pooling, *shared = rest
    return features.SequenceFeature(name, vocabulary, width, pooling, *shared)
