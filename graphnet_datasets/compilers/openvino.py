"""OpenVINO on CPUs."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from .base import Compiler
from .exporting import (
    COMPLEX,
    EXPORT_OPTIONS,
    check_count,
    check_dtypes,
    export_flat,
    input_positions,
    threads,
)
from .options import Option


class OpenVino(Compiler):
    """Convert the exported program and compile it for the CPU.

    By default OpenVINO computes float32 models in bfloat16 if the processor supports it. A warning
    then reports this, and the `min_t` of the outputs shows the loss of precision. `precision="f32"`
    keeps float32.
    """

    name = "openvino"
    package = "openvino"
    extra = "openvino"
    devices = ("cpu",)
    option_table: ClassVar[Mapping[str, Option]] = {
        **EXPORT_OPTIONS,
        "precision": Option("default", "What to compute in.", ("default", "f32", "bf16", "f16")),
        "num_threads": Option(0, "Threads; 0 is as many as torch uses."),
    }

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        openvino: Any = importlib.import_module("openvino")
        flat, program = export_flat(
            self.name, module, example_inputs, dynamic=self.options["dynamic"]
        )
        self.fixed_inputs = flat.fixed_inputs
        check_dtypes(self.name, flat, example_inputs, *COMPLEX)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = openvino.convert_model(program)
        if not self.options["dynamic"]:
            positions = input_positions(program)
            shapes = [list(tensor.shape) for tensor in flat.arguments(example_inputs)]
            model.reshape({port: shapes[_position(port, positions)] for port in model.inputs})
        config: dict[str, Any] = {
            "INFERENCE_NUM_THREADS": threads(self.options["num_threads"]),
            "PERFORMANCE_HINT": "LATENCY",
        }
        if self.options["precision"] != "default":
            config["INFERENCE_PRECISION_HINT"] = self.options["precision"]
        compiled = openvino.Core().compile_model(model, "CPU", config)
        self._note_precision(compiled, module)
        check_count(self.name, flat, len(compiled.outputs))
        positions = input_positions(program)
        order = [_position(port, positions) for port in compiled.inputs]
        request = compiled.create_infer_request()

        def run(**inputs: Any) -> Any:
            tensors = flat.arguments(inputs)
            request.infer([_to_openvino(tensors[index]) for index in order])
            return flat.rebuild(
                [_to_torch(request.get_output_tensor(i)) for i in range(len(compiled.outputs))]
            )

        return run

    def _note_precision(self, compiled: Any, module: Any) -> None:
        used = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        dtypes = {parameter.dtype for parameter in getattr(module, "parameters", list)()}
        if used in ("bf16", "f16") and (torch.float32 in dtypes or not dtypes):
            self.warnings.append(f"precision: float32 is computed in {used}")


def _position(node: Any, positions: Mapping[str, int]) -> int:
    """Return the position of the tensor argument behind a model input; conversion may drop some."""
    return next(positions[name] for name in sorted(node.get_names()) if name in positions)


def _to_openvino(tensor: torch.Tensor) -> Any:
    openvino: Any = importlib.import_module("openvino")
    tensor = tensor.contiguous()
    if tensor.dtype is torch.bfloat16:
        bits = tensor.view(torch.uint16).numpy()
        return openvino.Tensor(bits, list(tensor.shape), openvino.Type.bf16)
    return openvino.Tensor(tensor.numpy(), shared_memory=True)


def _to_torch(tensor: Any) -> torch.Tensor:
    """Return a copy, because the next call overwrites the same memory."""
    if tensor.get_element_type().get_type_name() == "bf16":
        # NumPy has no bfloat16, so the array has another dtype of the same width.
        bits = torch.from_numpy(tensor.data.copy()).view(torch.bfloat16)
        return bits.reshape(tuple(tensor.shape))
    return torch.from_numpy(tensor.data.copy())
