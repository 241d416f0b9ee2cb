"""Walks the model files that come with ultralytics, at their smallest scale."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..libraries.imports import optional
from ..libraries.ultralytics import preload
from .workloads import vision_line

LEFT_OUT = ("world", "yoloe", "rtdetr", "cls-resnet")
"""Parts of names of unsupported models: prompts in words need an encoder, RT-DETR needs targets,
and torchvision backbones are downloaded."""


def walk() -> Iterator[str]:
    """Yield catalog lines: detection, segmentation, poses, rotated boxes, classification."""
    preload()
    models = Path(optional("ultralytics").__file__).parent / "cfg" / "models"
    for path in sorted(models.rglob("*.yaml")):
        name = path.stem
        if any(part in name for part in LEFT_OUT):
            continue
        if re.search(r"^scales:", path.read_text(), re.MULTILINE):
            name = re.sub(r"(?<=\d)(?=-|$)", "n", name, count=1)
        inputs = {"_0": "normal(1,3,640,640)"}
        yield vision_line(f"ultralytics/{name}", "ultralytics", name, "", inputs)
