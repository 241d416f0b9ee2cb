"""Walks torchvision's registry of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..libraries.imports import optional
from ..libraries.torchvision import declare_operators
from .workloads import vision_line

LEFT_OUT = ("rcnn", "retinanet", "fcos", "ssd", "quantized_")
"""Parts of names: detection calls operators in C++, and quantized models hold packed weights."""

SWAG = ("regnet_y_128gf", "vit_h_14")
"""Models whose default weights are of a larger image than the model's: 224 pixels."""

CLIP_FRAMES = 16


def walk() -> Iterator[str]:
    """Yield catalog lines: classification, segmentation, video and optical flow."""
    declare_operators()
    models = optional("torchvision").models
    for name in models.list_models():
        if any(part in name for part in LEFT_OUT):
            continue
        inputs = {f"_{place}": text for place, text in enumerate(_inputs(name, models))}
        yield vision_line(f"torchvision/{name}", "torchvision", name, _overrides(name), inputs)


def _overrides(name: str) -> str:
    if name.startswith(("googlenet", "inception")):
        return "init_weights=False"
    if name.startswith(("deeplab", "fcn")):
        return "weights_backbone=None aux_loss=True"  # as in the published weights
    return "weights_backbone=None" if name.startswith("lraspp") else ""


def _inputs(name: str, models: Any) -> tuple[str, ...]:
    if name.startswith("raft"):
        return ("normal(1,3,368,496)", "normal(1,3,368,496)")
    height, width = (224, 224) if name in SWAG else _size(models.get_model_weights(name).DEFAULT)
    if "KINETICS400" in models.get_model_weights(name).DEFAULT.name:
        return (f"normal(1,3,{CLIP_FRAMES},{height},{width})",)
    return (f"normal(1,3,{height},{width})",)


def _size(weights: Any) -> tuple[int, int]:
    """Return the height and width of the images of published weights.

    Images are cropped, except those of segmentation models, which are only resized.
    """
    transforms = weights.transforms()
    sides = getattr(transforms, "crop_size", transforms.resize_size)
    return sides[0], sides[-1]
