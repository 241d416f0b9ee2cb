"""Walks torchvision's registry of models."""

from __future__ import annotations

from collections.abc import Iterator

from ..libraries.imports import optional
from ..libraries.torchvision import declare_operators

LEFT_OUT = ("rcnn", "retinanet", "fcos", "ssd", "quantized_")
"""Parts of names: detection calls operators in C++, and quantized models hold packed weights."""


def walk() -> Iterator[str]:
    """Yield catalog lines: classification, segmentation, video and optical flow."""
    declare_operators()
    for name in optional("torchvision").models.list_models():
        if any(part in name for part in LEFT_OUT):
            continue
        fields = (
            f"torchvision/{name}", "cv", "torchvision", name, _overrides(name), _inputs(name),
            "float32", "eval", "", "",
        )  # fmt: skip
        yield " | ".join(fields)


def _overrides(name: str) -> str:
    if name.startswith(("googlenet", "inception")):
        return "init_weights=False"
    is_dense = name.startswith(("deeplab", "fcn", "lraspp"))
    return "weights_backbone=None" if is_dense else ""


def _inputs(name: str) -> str:
    if name.startswith("raft"):
        return "_0=normal(1,3,128,128) _1=normal(1,3,128,128)"
    if name.startswith(("mvit", "swin3d", "s3d")):
        return "_0=normal(1,3,16,224,224)"
    if name.startswith(("r3d", "mc3", "r2plus1d")):
        return "_0=normal(1,3,16,112,112)"
    size = 299 if name.startswith("inception") else 224
    return f"_0=normal(1,3,{size},{size})"
