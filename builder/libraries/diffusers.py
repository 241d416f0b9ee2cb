"""Models of diffusers: a model class and arguments of its constructor."""

from __future__ import annotations

import torch

from ..catalog import CatalogError, Entry
from . import torchaudio
from .imports import optional
from .torchvision import declare_operators


def preload() -> None:
    """Import what every model of the library needs."""
    declare_operators()
    torchaudio.preload_if_installed()
    diffusers = optional("diffusers")
    diffusers.utils.logging.set_verbosity_error()
    _ = diffusers.ModelMixin  # which is imported when it is asked for


def build(entry: Entry) -> torch.nn.Module:
    """Return a model of the named class with its default arguments, overridden."""
    declare_operators()
    diffusers = optional("diffusers")
    model_class = getattr(diffusers, entry.builder, None)
    if not isinstance(model_class, type) or not issubclass(model_class, diffusers.ModelMixin):
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is not a model class.")
    return model_class(**entry.overrides)
