"""The sources of the full dataset and the catalog lines of each, walked or read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from .catalog import Entry, parse_line, read_catalog
from .walks import geometric, segmentation, timm, torchvision, transformers, ultralytics

BUILDER = Path(__file__).parent

WALKS: dict[str, Callable[[], Iterator[str]]] = {
    "transformers": transformers.walk,
    "timm": timm.walk,
    "torchvision": torchvision.walk,
    "torch_geometric": geometric.walk,
    "segmentation_models_pytorch": segmentation.walk,
    "ultralytics": ultralytics.walk,
}

FILES: dict[str, tuple[str, ...]] = {
    "starter": ("starter.txt",),
    "torch": ("catalogs/torch.txt",),
    "diffusers": ("catalogs/diffusers.txt",),
    "torchaudio": ("catalogs/torchaudio.txt",),
    "torch_geometric": ("catalogs/torch_geometric.txt",),
}

SOURCES = tuple(dict.fromkeys([*FILES, *WALKS]))


def entries_of(source: str) -> list[Entry]:
    """Return the entries of a source: those of its files, then those of its walk."""
    entries = [entry for file in FILES.get(source, ()) for entry in read_catalog(BUILDER / file)]
    if source in WALKS:
        entries += [parse_line(line) for line in WALKS[source]()]
    return entries
