"""`torch.compile` with tracing and functionalisation but without code generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend

from .dynamo import DynamoCompiler


class AOTEager(DynamoCompiler):
    """Capture and functionalise the graph, then run its operators eagerly: the cost of capture
    alone.
    """

    name = "aot_eager"

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        return lookup_backend("aot_eager")(graph, list(example_inputs))
