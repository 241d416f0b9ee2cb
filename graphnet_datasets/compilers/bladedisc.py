"""BladeDISC through its TorchScript interface."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .base import Compiler
from .flat import FlatModule


class BladeDisc(Compiler):
    """Trace the module, then let BladeDISC cluster and compile it. The wheels are not on PyPI."""

    name = "bladedisc"
    package = "torch_blade"
    extra = ""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        torch_blade: Any = importlib.import_module("torch_blade")
        flat = FlatModule(module, example_inputs).eval()
        self.fixed_inputs = flat.fixed_inputs
        arguments = flat.arguments(example_inputs)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            compiled = torch_blade.optimize(flat, allow_tracing=True, model_inputs=arguments)

        def run(**inputs: Any) -> Any:
            return flat.rebuild(compiled(*flat.arguments(inputs)))

        return run
