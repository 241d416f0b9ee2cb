"""Eager in torch's inference mode, and with the weights of convolutions channels last if asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from graphnet_datasets.compilers import Compiler
from graphnet_datasets.compilers.options import Option


class InferenceMode(Compiler):
    """Leave out what torch does to keep track of versions and views of tensors."""

    name = "inference-mode"
    package = "graphnet-inference-mode"
    module = "graphnet_inference_mode"
    extra = ""
    option_table: ClassVar[Mapping[str, Option]] = {
        "channels_last": Option(False, "Lay out the weights of convolutions that way.")
    }

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        del example_inputs
        if self.options["channels_last"] and isinstance(module, torch.nn.Module):
            for weight in module.parameters():
                if weight.dim() == 4:
                    weight.data = weight.data.contiguous(memory_format=torch.channels_last)

        @torch.inference_mode()
        def call(**inputs: Any) -> Any:
            return module(**inputs)

        return call
