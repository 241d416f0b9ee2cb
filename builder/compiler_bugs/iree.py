"""Bugs of IREE and torch-mlir."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .bug import Catalog, normals

catalog = Catalog("iree")
add = catalog.add

REPOSITORY = "iree-org/iree/issues"

add(
    "triu", "triu is not lowered", f"{REPOSITORY}/17415", "commit 71a9945",
    "The upper triangle is kept. IREE failed to legalize `torch.aten.arange.start_step`.",
    lambda x: torch.triu(x, 1), normals(8, 9),
)  # fmt: skip
add(
    "nll-loss", "The negative log likelihood is wrong on the CPU", f"{REPOSITORY}/14934",
    "reported 2023-09",
    "The loss is the mean of the selected elements. IREE returned another number; IREE 3.13 does "
    "not compile the graph.",
    lambda x, y: functional.nll_loss(x, y), normals(8, 16, seed=1), np.arange(8) % 16,
    is_as_reported=False,
)  # fmt: skip
add(
    "gather-strided", "A gather of a strided slice is wrong", f"{REPOSITORY}/19749",
    "reported 2025-01",
    "The rows of every second matrix are selected. IREE read others.",
    lambda x, i: torch.index_select(x[:, 0], 0, i), normals(57, 2, 16, seed=2).astype(np.float16),
    [3, 41],
)  # fmt: skip
