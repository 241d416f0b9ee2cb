"""Models of this project in plain torch: the functions of `builder.architectures`."""

from __future__ import annotations

import torch

from ..architectures import ARCHITECTURES
from ..catalog import CatalogError, Entry


def preload() -> None:
    """Do nothing: the modules are imported already."""


def build(entry: Entry) -> torch.nn.Module:
    """Return the model that a function of `builder.architectures` builds from the overrides."""
    if entry.builder not in ARCHITECTURES:
        raise CatalogError(
            f"`{entry.name}` names the architecture `{entry.builder}` "
            f"(accepted: {', '.join(sorted(ARCHITECTURES))})."
        )
    return ARCHITECTURES[entry.builder](**entry.overrides)
