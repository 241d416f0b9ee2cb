"""Models of ultralytics: the name of one of its YAML files, without the suffix."""

from __future__ import annotations

import torch

from ..catalog import CatalogError, Entry
from .imports import optional
from .torchvision import declare_operators


def preload() -> None:
    """Import the modules that models consist of."""
    declare_operators()
    optional("ultralytics.nn.tasks")


def build(entry: Entry) -> torch.nn.Module:
    """Return the model that the named file describes, without its loss and post-processing."""
    declare_operators()
    tasks = optional("ultralytics.nn.tasks")
    classes = {
        "-cls": tasks.ClassificationModel,
        "-seg": tasks.SegmentationModel,
        "-pose": tasks.PoseModel,
        "-obb": tasks.OBBModel,
    }
    for ending, model_class in classes.items():
        if entry.builder.endswith(ending):
            return model_class(f"{entry.builder}.yaml", verbose=False)
    if "rtdetr" in entry.builder:
        return tasks.RTDETRDetectionModel(f"{entry.builder}.yaml", verbose=False)
    if "world" in entry.builder:
        return tasks.WorldModel(f"{entry.builder}.yaml", verbose=False)
    if not entry.builder.startswith("yolo"):
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is not a model.")
    return tasks.DetectionModel(f"{entry.builder}.yaml", verbose=False)
