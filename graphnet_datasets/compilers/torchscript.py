"""TorchScript: the module is traced and handed to the graph executor of TorchScript."""

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

    The executor specialises in its first calls, which the warm-up covers.
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
            # TorchScript is deprecated and warns so; and that a trace fixes what depends on
            # values or shapes is why its outputs are compared with those of eager.
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
