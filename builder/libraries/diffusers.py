"""Models of diffusers: a model class and arguments of its constructor."""

from __future__ import annotations

import torch

from ..catalog import Entry
from . import torchaudio
from .imports import model_class, optional
from .torchvision import declare_operators


def preload() -> None:
    """Import the modules that all models of the library use."""
    declare_operators()
    torchaudio.preload_if_installed()
    diffusers = optional("diffusers")
    diffusers.utils.logging.set_verbosity_error()
    _ = diffusers.ModelMixin  # imports it, because the package loads its names lazily


def build(entry: Entry) -> torch.nn.Module:
    """Return a model of the named class with its default arguments, overridden."""
    declare_operators()
    diffusers = optional("diffusers")
    model_type = model_class(diffusers, entry.builder, entry, diffusers.ModelMixin)
    return model_type(**entry.overrides)
