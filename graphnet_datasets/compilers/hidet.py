"""Hidet's backend of `torch.compile`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch._dynamo.backends.registry import lookup_backend

from .dynamo import DYNAMO_OPTIONS, DynamoCompiler
from .options import Option


class Hidet(DynamoCompiler):
    """Hidet on NVIDIA GPUs; `search_space` sets how extensively kernels are tuned."""

    name = "hidet"
    package = "hidet"
    extra = ""
    devices = ("cuda",)
    option_table: ClassVar[Mapping[str, Option]] = {
        **DYNAMO_OPTIONS,
        "search_space": Option(0, "Tuning: none, small or exhaustive.", (0, 1, 2)),
    }

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        hidet: Any = importlib.import_module("hidet")
        hidet.torch.dynamo_config.search_space(self.options["search_space"])
        return lookup_backend("hidet")(graph, list(example_inputs))
