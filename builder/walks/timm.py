"""Walks timm's registry of models, a few of each architecture file first."""

from __future__ import annotations

from collections.abc import Iterator

from ..libraries.imports import optional
from ..libraries.torchvision import declare_operators
from .workloads import vision_line

LEFT_OUT = ("test_",)
"""Prefixes of models for timm's own tests, which were never published."""

FIRST = 6
"""Number of models of each file that come first, so that a shortened walk covers every file."""


def walk() -> Iterator[str]:
    """Yield catalog lines: every registered model with its own input size."""
    declare_operators()
    timm = optional("timm")
    by_file = {file: timm.list_models(module=file) for file in timm.list_modules()}
    chosen = [
        names[position * len(names) // FIRST]
        for names in by_file.values()
        for position in range(FIRST)
        if names
    ]
    for name in dict.fromkeys([*chosen, *timm.list_models()]):
        if name.startswith(LEFT_OUT):
            continue
        config = timm.get_pretrained_cfg(name)
        channels, height, width = (config.input_size if config else None) or (3, 224, 224)
        inputs = {"_0": f"normal(1,{channels},{height},{width})"}
        yield vision_line(f"timm/{name}", "timm", name, "", inputs)
