"""XLA through torch_xla's backend of `torch.compile`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend

from .dynamo import DynamoCompiler


class Xla(DynamoCompiler):
    """OpenXLA, for modules and inputs that are on an XLA device."""

    name = "xla"
    package = "torch_xla"
    extra = ""
    devices = ("xla",)

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        importlib.import_module("torch_xla")
        return lookup_backend("openxla")(graph, list(example_inputs))

    def synchronize(self) -> None:
        """Wait for the device, because XLA tensors are lazy."""
        torch_xla: Any = importlib.import_module("torch_xla")
        torch_xla.sync(wait=True)
