"""Models of torchvision: a name of its registry and arguments of its builder.

The wheel on PyPI is built for torch with CUDA. Its C++ operators do not load with torch for CPUs,
but all Python code works if the two operators with Python kernels are declared.
"""

from __future__ import annotations

import functools

import torch

from ..catalog import Entry
from .imports import optional


@functools.cache
def declare_operators() -> None:
    """Declare the operators that `import torchvision` requires, if its own do not load."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in (
        ("nms", "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
        ("qnms", "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
    ):
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _DECLARED.append(library)


_DECLARED: list[torch.library.Library] = []
"""Keeps the declarations alive."""


def preload() -> None:
    """Import the registry of models."""
    declare_operators()
    optional("torchvision")


def build(entry: Entry) -> torch.nn.Module:
    """Return the named model with random weights."""
    declare_operators()
    return optional("torchvision").models.get_model(entry.builder, weights=None, **entry.overrides)
