"""From a catalog entry to a module without weights."""

from __future__ import annotations

import contextlib

import torch

from graphnet_datasets import without_weights

from .catalog import CatalogError, Entry
from .libraries import library_of


def build_model(entry: Entry) -> torch.nn.Module:
    """Return the entry's model on the meta device, in its mode and dtype; buffers have elements.

    Raises:
        CatalogError: the builder is unknown or does not take the overrides.
        MissingExtraError: the library of the entry is not installed.
    """
    torch.manual_seed(0)  # buffers that are drawn at random are drawn alike
    library = library_of(entry)
    try:
        with contextlib.nullcontext() if library.has_weights else without_weights():
            model = library.build(entry)
    except TypeError as error:
        raise CatalogError(f"`{entry.name}` cannot be built: {error}") from error
    model.train(entry.mode == "train")
    return model.to(getattr(torch, entry.dtype))


def source_of(entry: Entry) -> tuple[str, str, str]:
    """Return where the model's code comes from, in which version and under which licence."""
    library = library_of(entry)
    version = f"{entry.library} {library.version}" if library.distribution else ""
    return library.source, version, library.license
