"""TensorRT through torch_tensorrt's backend of `torch.compile`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch._dynamo.backends.registry import lookup_backend

from .dynamo import DYNAMO_OPTIONS, DynamoCompiler, count_operators
from .options import Option


class TensorRT(DynamoCompiler):
    """Engines for the operators that TensorRT supports, torch for the rest.

    A warning reports the share of operators that torch runs.
    """

    name = "tensorrt"
    package = "torch_tensorrt"
    extra = "tensorrt"
    devices = ("cuda",)
    option_table: ClassVar[Mapping[str, Option]] = {
        **DYNAMO_OPTIONS,
        "precision": Option("f32", "What engines may compute in.", ("f32", "f16", "bf16")),
        "min_block_size": Option(5, "Fewest operators that make an engine."),
    }

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        importlib.import_module("torch_tensorrt")
        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        options = {
            "enabled_precisions": {torch.float32, dtype[self.options["precision"]]},
            "min_block_size": self.options["min_block_size"],
            # By default float32 is computed in TF32.
            "disable_tf32": True,
        }
        total = count_operators(graph)
        backend: Any = lookup_backend("torch_tensorrt")
        compiled = backend(graph, list(example_inputs), options=options)
        self._note_share_left_to_torch(compiled, total)
        return compiled

    def _note_share_left_to_torch(self, compiled: Any, total: int) -> None:
        if not isinstance(compiled, torch.fx.GraphModule):
            return
        num_left = sum(
            count_operators(part)
            for name, part in compiled.named_children()
            if not name.startswith("_run_on_acc")
        )
        if total:
            self.note_fallback(min(1.0, num_left / total))
