"""`torch.compile` with CUDA graphs around uncompiled kernels: the launch overhead alone goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend

from .dynamo import DynamoCompiler


class CudaGraphs(DynamoCompiler):
    """Capture and replay as one CUDA graph; on a CPU there is nothing to capture: a control."""

    name = "cudagraphs"

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        return lookup_backend("cudagraphs")(graph, list(example_inputs))
