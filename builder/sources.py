"""The sources of the full dataset and the catalog lines of each, walked or read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from graphnet_datasets.errors import GraphNetError

from .catalog import Entry, parse_line, read_catalog
from .paddle_packages import PACKAGES
from .walks import (
    geometric,
    paddleclas,
    pytorchcv,
    rechub,
    segmentation,
    timm,
    torchvision,
    transformers,
    ultralytics,
)

BUILDER = Path(__file__).parent

WALKS: dict[str, Callable[[], Iterator[str]]] = {
    "transformers": transformers.walk,
    "timm": timm.walk,
    "torchvision": torchvision.walk,
    "torch_geometric": geometric.walk,
    "segmentation_models_pytorch": segmentation.walk,
    "pytorchcv": pytorchcv.walk,
    "torch_rechub": rechub.walk,
    "ultralytics": ultralytics.walk,
    "paddleclas": paddleclas.walk,
}

FILES: dict[str, tuple[str, ...]] = {
    "starter": ("starter.txt",),
    "torch": ("catalogs/torch.txt",),
    "transformers": ("catalogs/transformers.txt",),
    "diffusers": ("catalogs/diffusers.txt",),
    "torchaudio": ("catalogs/torchaudio.txt",),
    "torch_geometric": ("catalogs/torch_geometric.txt",),
    "spandrel": ("catalogs/spandrel.txt",),
    "vit_pytorch": ("catalogs/vit_pytorch.txt",),
    "kornia": ("catalogs/kornia.txt",),
    "monai": ("catalogs/monai.txt",),
    "neuralop": ("catalogs/neuralop.txt",),
    "asteroid": ("catalogs/asteroid.txt",),
    "speechbrain": ("catalogs/speechbrain.txt",),
    "serving": ("catalogs/serving.txt",),
    "torchao": ("catalogs/torchao.txt",),
    "training": ("catalogs/training.txt",),
    "control_flow": ("catalogs/control_flow.txt",),
    "paddle": ("paddle.txt", "catalogs/paddle.txt", "catalogs/paddle_layers.txt"),
    **{name: (f"catalogs/{name}.txt",) for name in PACKAGES},
}

SOURCES = tuple(dict.fromkeys([*FILES, *WALKS]))


def entries_of(source: str) -> list[Entry]:
    """Return the entries of a source: those of its files, then those of its walk."""
    entries = [entry for file in FILES.get(source, ()) for entry in read_catalog(BUILDER / file)]
    if source in WALKS:
        entries += [parse_line(line) for line in WALKS[source]()]
    return entries


def named_entries(sources: list[str], limit: int | None) -> list[Entry]:
    """Return the distinct entries of the named sources, or of all sources without names.

    Raises:
        GraphNetError: there is no such source.
    """
    unknown = sorted(set(sources) - set(SOURCES))
    if unknown:
        raise GraphNetError(
            f"There is no source `{unknown[0]}`. Choose one of {', '.join(SOURCES)}."
        )
    entries = [entry for source in sources or SOURCES for entry in entries_of(source)[:limit]]
    return list({entry.name: entry for entry in entries}.values())
