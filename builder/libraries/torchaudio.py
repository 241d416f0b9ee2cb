"""Models of torchaudio: a factory or class of `torchaudio.models` and its arguments.

The wheel on PyPI is built for torch with CUDA, and its C++ library does not load with torch for
CPUs. Without the library torchaudio uses its own Python code, so the library is hidden.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import torch

from ..catalog import CatalogError, Entry
from .imports import optional


@functools.cache
def preload() -> None:
    """Import the models."""
    glob = Path.glob

    def without_library(path: Path, pattern: str) -> Iterator[Path]:
        return iter(()) if "torchaudio" in pattern else glob(path, pattern)

    with mock.patch.object(Path, "glob", without_library):
        optional("torchaudio.models")


def preload_if_installed() -> None:
    """Import the models before other libraries import an installed torchaudio."""
    if importlib.util.find_spec("torchaudio") is not None:
        preload()


def build(entry: Entry) -> torch.nn.Module:
    """Return the model that the named factory builds from the overrides."""
    preload()
    models = optional("torchaudio.models")
    if entry.builder not in models.__all__:
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is not a model.")
    return getattr(models, entry.builder)(**entry.overrides)
