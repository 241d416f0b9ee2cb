"""`torch.compile` with CUDA graphs around uncompiled kernels, which reduces launch overhead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend

from .dynamo import DynamoCompiler


class CudaGraphs(DynamoCompiler):
    """Record kernels into a CUDA graph and replay it. On a CPU nothing is recorded, so it serves as
    a control."""

    name = "cudagraphs"

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        return lookup_backend("cudagraphs")(graph, list(example_inputs))
