"""Walks torchvision's registry of models."""

from __future__ import annotations

from collections.abc import Iterator

from ..libraries.imports import optional
from ..libraries.torchvision import declare_operators
from .workloads import vision_line

LEFT_OUT = ("rcnn", "retinanet", "fcos", "ssd", "quantized_")
"""Parts of names: detection calls operators in C++, and quantized models hold packed weights."""


def walk() -> Iterator[str]:
    """Yield catalog lines: classification, segmentation, video and optical flow."""
    declare_operators()
    for name in optional("torchvision").models.list_models():
        if any(part in name for part in LEFT_OUT):
            continue
        inputs = {f"_{place}": text for place, text in enumerate(_inputs(name))}
        yield vision_line(f"torchvision/{name}", "torchvision", name, _overrides(name), inputs)


def _overrides(name: str) -> str:
    if name.startswith(("googlenet", "inception")):
        return "init_weights=False"
    is_dense = name.startswith(("deeplab", "fcn", "lraspp"))
    return "weights_backbone=None" if is_dense else ""


def _inputs(name: str) -> tuple[str, ...]:
    if name.startswith("raft"):
        return ("normal(1,3,368,496)", "normal(1,3,368,496)")
    if name.startswith(("mvit", "swin3d", "s3d")):
        return ("normal(1,3,16,224,224)",)
    if name.startswith(("r3d", "mc3", "r2plus1d")):
        return ("normal(1,3,16,112,112)",)
    if name.startswith(("deeplab", "fcn", "lraspp")):
        return ("normal(1,3,520,520)",)
    size = 299 if name.startswith("inception") else 224
    return (f"normal(1,3,{size},{size})",)
