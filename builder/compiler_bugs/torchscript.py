"""Bugs of TorchScript."""

from __future__ import annotations

import torch

from .bug import Catalog, normals

catalog = Catalog("torchscript")
add = catalog.add

add(
    "view-dtype", "view as another dtype cannot be traced", "pytorch/pytorch/issues/90365",
    "1.14.dev20221202",
    "`view(torch.int32)` returns the bits of the floats. Tracing raises an internal assertion.",
    lambda x: (x + 1.0).view(torch.int32), normals(4),
)  # fmt: skip
add(
    "full-bool", "full with a boolean cannot be traced", "pytorch/pytorch/issues/130229",
    "torch of 2024-07",
    "`full` with `True` returns a tensor of booleans. Tracing raises an internal assertion.",
    lambda x: torch.full((4,), True) & (x > 0.0), normals(4, seed=1),
)  # fmt: skip
