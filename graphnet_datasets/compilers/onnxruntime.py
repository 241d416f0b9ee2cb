"""ONNX Runtime with torch's ONNX exporter."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.utils.dlpack
from tqdm import tqdm

from ..errors import CompilerError, CompilerUnavailableError
from .base import Compiler
from .exporting import COMPLEX, EXPORT_OPTIONS, check_count, check_dtypes, export_flat, threads
from .flat import FlatModule
from .onnx_registry import keep_registry
from .options import Option

_OPTIMIZATION = {"none": 0, "basic": 1, "extended": 2, "all": 99}
"""Levels of `onnxruntime.GraphOptimizationLevel`."""
_SPINNING = {
    "within_calls": {"session.force_spinning_stop": "1"},
    "always": {},
    "never": {"session.intra_op.allow_spinning": "0"},
}
"""Entries of the session configuration."""


class OnnxRuntime(Compiler):
    """Export to ONNX and run with ONNX Runtime, passing tensors without a copy.

    By default, the threads of ONNX Runtime spin for about forty milliseconds after a call and take
    processor time from whatever runs next: on two processors, interleaved eager calls took up to
    four times as long. So the default here is to spin only within calls, which makes consecutive
    calls up to 5 % slower. `spinning="always"` is ONNX Runtime's own default, for a process that
    runs nothing else.
    """

    name = "onnxruntime"
    package = "onnxruntime"
    extra = "onnxruntime"
    uses_framework_compiler = False
    option_table: ClassVar[Mapping[str, Option]] = {
        **EXPORT_OPTIONS,
        "optimization": Option("all", "Level of graph optimisation.", tuple(_OPTIMIZATION)),
        "num_threads": Option(0, "Threads within an operator; 0 is as many as torch uses."),
        "spinning": Option(
            "within_calls", "When threads wait for work in a loop.", tuple(_SPINNING)
        ),
    }

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        for package in ("onnxscript", "onnxruntime"):
            if importlib.util.find_spec(package) is None:
                return False, (
                    f"`{package}` is not installed (pip install 'graphnet-datasets[onnxruntime]')"
                )
        return True, ""

    @classmethod
    def prepare(cls) -> None:
        """Export a trivial graph, which imports nine hundred modules.

        Later exports reuse the exporter's operator table.
        """
        keep_registry()
        inputs = {"input": torch.ones(1)}
        _, program = export_flat(cls.name, torch.nn.Identity(), inputs, dynamic=False)
        # The exporter's progress bar would leave its monitoring thread running.
        interval, tqdm.monitor_interval = tqdm.monitor_interval, 0
        try:
            with tempfile.TemporaryDirectory(prefix="graphnet-onnx-") as directory:
                save_onnx(program, Path(directory) / "model.onnx")
        finally:
            tqdm.monitor_interval = interval

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        onnxruntime: Any = importlib.import_module("onnxruntime")
        bindings: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        flat, program = export_flat(
            self.name, module, example_inputs, dynamic=self.options["dynamic"]
        )
        self.fixed_inputs = flat.fixed_inputs
        check_dtypes(self.name, flat, example_inputs, *COMPLEX)
        device = next(iter(flat.arguments(example_inputs)), torch.empty(0)).device
        with tempfile.TemporaryDirectory(prefix="graphnet-onnx-") as directory:
            path = Path(directory) / "model.onnx"
            save_onnx(program, path)
            providers = _providers(device, onnxruntime.get_available_providers())
            settings = self._session_options(onnxruntime)
            try:
                session = onnxruntime.InferenceSession(path, settings, providers=providers)
            except bindings.NotImplemented as error:
                raise CompilerError(
                    f"`{self.name}` has no kernel for an operator in the dtype of the graph "
                    f"({error}). Cast the graph to another dtype first."
                ) from error
        return bind_session(session, flat)

    def _session_options(self, onnxruntime: Any) -> Any:
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads(self.options["num_threads"])
        settings.inter_op_num_threads = 1
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel(
            _OPTIMIZATION[self.options["optimization"]]
        )
        for name, value in _SPINNING[self.options["spinning"]].items():
            settings.add_session_config_entry(name, value)
        return settings


def bind_session(session: Any, flat: FlatModule) -> Callable[..., Any]:
    """Return a callable that passes inputs to a session and restores the graph's outputs.

    Raises:
        CompilerError: The model has another number of outputs than the graph.
    """
    bindings: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    names = [node.name for node in session.get_inputs()]
    outputs = [node.name for node in session.get_outputs()]
    check_count(OnnxRuntime.name, flat, len(outputs))
    ort_value, run_session = bindings.OrtValue, session._sess.run_with_ort_values

    def run(**inputs: Any) -> Any:
        values = {
            name: ort_value.from_dlpack(*_capsule(tensor))
            for name, tensor in zip(names, flat.arguments(inputs), strict=True)
        }
        results = run_session(values, outputs, None)
        return flat.rebuild([_tensor(result) for result in results])

    return run


def save_onnx(
    program: torch.export.ExportedProgram, path: Path, *, external_data: bool = True
) -> None:
    """Export a program to ONNX; with `external_data`, weights are stored beside the model."""
    # Hide the exporter's messages about operators of packages that are not installed.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.onnx.export(program, dynamo=True, verbose=False)
    if exported is None:
        raise RuntimeError("`torch.onnx.export` returned None.")
    # One file cannot exceed 2 GB.
    exported.save(path, external_data=external_data)


def _providers(device: torch.device, available: list[str]) -> list[str]:
    if device.type != "cuda":
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in available:
        # The session would silently fall back to the CPU and only log it.
        raise CompilerUnavailableError(
            "The compiler `onnxruntime` cannot run here: the installed package has no CUDA "
            "execution provider. Install `onnxruntime-gpu`."
        )
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


def _capsule(tensor: torch.Tensor) -> tuple[Any, bool]:
    """Return a tensor that DLPack supports, and whether its bytes represent booleans."""
    is_bool = tensor.dtype is torch.bool
    tensor = tensor.contiguous()
    return (tensor.view(torch.uint8) if is_bool else tensor).__dlpack__(), is_bool


def _tensor(value: Any) -> torch.Tensor:
    tensor = torch.utils.dlpack.from_dlpack(value.to_dlpack())
    # Booleans arrive through DLPack as bytes.
    return tensor.bool() if value.data_type() == "tensor(bool)" else tensor
