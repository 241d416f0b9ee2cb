"""Walks timm's registry of models, a few of each architecture file first."""

from __future__ import annotations

from collections.abc import Iterator

from ..libraries.imports import optional
from ..libraries.torchvision import declare_operators
from .overrides import read_overrides

FIRST = 6
"""Models of each file that come before all others: a walk that is cut short has every file."""


def walk() -> Iterator[str]:
    """Yield catalog lines: every registered model with its own input size."""
    declare_operators()
    timm = optional("timm")
    overrides = read_overrides("timm")
    by_file = {file: timm.list_models(module=file) for file in timm.list_modules()}
    chosen = [
        names[position * len(names) // FIRST]
        for names in by_file.values()
        for position in range(FIRST)
        if names
    ]
    for position, name in enumerate(dict.fromkeys([*chosen, *timm.list_models()])):
        override = overrides.get(name)
        if override is not None and override.is_left_out:
            continue
        config = timm.get_pretrained_cfg(name)
        channels, height, width = (config.input_size if config else None) or (3, 224, 224)
        inputs = f"_0=normal(1,{channels},{height},{width})"
        given = ""
        if override is not None:
            inputs, given = override.inputs or inputs, override.overrides
        variant = ("", "float32", "eval", "")
        if name in chosen:
            variant = VARIANTS[position % len(VARIANTS)]
        suffix, dtype, mode, dynamic = variant
        if dynamic or mode == "train":  # statistics over a batch of one are none
            inputs = inputs.replace("(1,", "(2,", 1)
        fields = (
            f"timm/{name}{suffix}", "cv", "timm", name, given, inputs, dtype, mode, dynamic, "",
        )  # fmt: skip
        yield " | ".join(fields)


VARIANTS = (
    ("", "float32", "eval", ""),
    ("-bfloat16", "bfloat16", "eval", ""),
    ("", "float32", "eval", ""),
    ("-train", "float32", "train", ""),
    ("-float16", "float16", "eval", ""),
    ("-dynamic", "float32", "eval", "_0.0"),
)
"""Suffix, dtype, mode and dynamic dimensions, in turn for the models that come first."""
