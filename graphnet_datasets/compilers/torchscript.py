"""TorchScript: traces the module and runs it with TorchScript's graph executor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from .base import Compiler
from .flat import FlatModule
from .options import Option


class TorchScript(Compiler):
    """Trace; then, by default, freeze and optimise for inference.

    The executor specialises during its first calls, which belong to the warm-up.
    """

    name = "torchscript"
    uses_framework_compiler = False
    option_table: ClassVar[Mapping[str, Option]] = {
        "freeze": Option(True, "Fold weights that are parameters of the module."),
        "optimize_for_inference": Option(True, "Apply the passes for inference after freezing."),
    }

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        flat = FlatModule(module, example_inputs).eval()
        self.fixed_inputs = flat.fixed_inputs
        with warnings.catch_warnings():
            # Ignore the deprecation warning, and warnings that a trace fixes values or shapes: the
            # comparison with eager detects wrong outputs.
            warnings.simplefilter("ignore")
            traced: Any = torch.jit.trace(
                flat, flat.arguments(example_inputs), check_trace=False, strict=False
            )
            if self.options["freeze"]:
                traced = torch.jit.freeze(traced)
                if self.options["optimize_for_inference"]:
                    traced = torch.jit.optimize_for_inference(traced)

        def run(**inputs: Any) -> Any:
            return flat.rebuild(traced(*flat.arguments(inputs)))

        return run
