"""Conversions of torch graphs to programs: written to a file, loaded from it and called."""

from __future__ import annotations

import importlib
import logging
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..analysis.randomness import is_random
from ..benchmark.judging.correctness import Output, find_mismatch
from ..compilers.exporting import COMPLEX, check_dtypes, export_flat, quiet_copies
from ..errors import ConversionError, GraphNetError
from ..frameworks import make_inputs, materialize, print_source
from ..frameworks.protocols import Runtime
from ..frameworks.runtime import make_runtime
from ..inputs.storage import STORAGE
from ..sample import Sample
from ..scores.tolerance import min_t
from .problems import print_problem

WRONG_T = -3.0
"""Outputs of a converted graph must agree with eager at this tolerance."""

Call = Callable[..., Any]


class Workload:
    """The module and the inputs of a sample, with eager's outputs for them.

    Weights belong to the module (`weights="parameters"`) or to the inputs.

    Raises:
        ConversionError: the sample has no output tensors.
    """

    def __init__(self, sample: Sample, *, weights: Any = "parameters") -> None:
        self.sample = sample
        self.runtime: Runtime = make_runtime("torch", "cpu", torch.get_num_threads())
        self.module = materialize(sample, weights=weights, allow_unchecked_operators=True)
        self.inputs = make_inputs(sample, weights=weights)
        # A copy of the module computes the outputs, because the graph may write to its weights.
        self.expected = self.outputs_of(
            materialize(sample, weights=weights, allow_unchecked_operators=True)
        )
        if not self.expected:
            raise ConversionError(
                f"`{sample.id}` has no output tensors, so a converted graph cannot be compared. "
                "Convert it to `networkx` or `pyg`."
            )

    def arguments(self) -> dict[str, Any]:
        """Return copies of the inputs."""
        return {name: self.runtime.clone(value) for name, value in self.inputs.items()}

    def outputs_of(self, call: Call) -> list[Output]:
        """Return the output tensors of a callable."""
        self.runtime.seed(0)
        with torch.no_grad():
            results = call(**self.arguments())
        return [
            Output(dtype, np.frombuffer(elements, STORAGE[dtype]).reshape(shape))
            for dtype, shape, elements in self.runtime.excerpt(results, None)
        ]

    def compare(self, call: Call) -> float | None:
        """Return the smallest t at which the outputs of a callable agree with eager's.

        Returns None for random outputs, of which only dtypes and shapes are compared.

        Raises:
            ConversionError: the outputs differ at `WRONG_T`.
        """
        actual = self.outputs_of(call)
        _, mismatch = find_mismatch(self.expected, actual)
        if mismatch:
            raise ConversionError(
                f"The outputs of the converted graph differ from eager's. {mismatch}"
            )
        if is_random(self.sample):
            return None
        t = max(
            min_t(ours.elements, theirs.elements, theirs.dtype)
            for ours, theirs in zip(actual, self.expected, strict=True)
        )
        if t > WRONG_T:
            raise ConversionError(
                "The outputs of the converted graph differ from eager's: they agree from t = "
                f"{t:.3g} on, but t = {WRONG_T:g} is required."
            )
        return t


def write_pt2(workload: Workload, path: Path) -> float | None:
    """Write an exported program and call it again after loading."""
    with quiet_copies():
        program = torch.export.export(workload.module, (), workload.arguments(), strict=False)
        torch.export.save(program, path)
        del program
        loaded = torch.export.load(path).module()
    return workload.compare(loaded)


def write_onnx(workload: Workload, path: Path) -> float | None:
    """Write an ONNX model and run it with ONNX Runtime."""
    from ..compilers.onnxruntime import bind_session, save_onnx

    onnxruntime: Any = importlib.import_module("onnxruntime")
    flat, program = export_flat("onnx", workload.module, workload.arguments(), dynamic=False)
    check_dtypes("onnx", flat, workload.inputs, *COMPLEX)
    save_onnx(program, path, external_data=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return workload.compare(bind_session(session, flat))


def write_stablehlo(workload: Workload, path: Path) -> float | None:
    """Write StableHLO as serialized by `jax.export`, and call it after loading."""
    from ..compilers.jax import export_jax, to_jax

    jax: Any = importlib.import_module("jax")
    jax_export: Any = importlib.import_module("jax.export")
    logging.getLogger("jax").setLevel(logging.ERROR)
    flat, weights, function = export_jax("stablehlo", workload.module, workload.arguments())
    arguments = to_jax(flat.arguments(workload.arguments()))
    exported = jax_export.export(jax.jit(lambda *tensors: function(weights, tensors)))(*arguments)
    path.write_bytes(exported.serialize())
    loaded = jax_export.deserialize(bytearray(path.read_bytes()))

    def call(**inputs: Any) -> Any:
        results = loaded.call(*to_jax(flat.arguments(inputs)))
        return flat.rebuild([torch.from_dlpack(array) for array in results])

    return workload.compare(call)


def write_source(workload: Workload, path: Path) -> float | None:
    """Write the source of a module that takes all inputs, and call the module of that file."""
    path.write_text(print_source(workload.sample))
    return workload.compare(_run(path)["GraphModule"]())


def write_problem(workload: Workload, path: Path) -> float | None:
    """Write a KernelBench problem, and call its model with the sample's weights and inputs."""
    path.write_text(print_problem(workload.sample))
    problem = _run(path)
    problem["Model"](*problem["get_init_inputs"]())(*problem["get_inputs"]())
    model = problem["Model"](*problem["get_init_inputs"]())
    weights = workload.runtime.tensors_of(workload.module)
    for name, tensor in workload.runtime.tensors_of(model).items():
        tensor.copy_(weights[name])

    def call(**inputs: Any) -> Any:
        return model(*inputs.values())

    return workload.compare(call)


WRITERS: Mapping[str, Callable[[Workload, Path], float | None]] = {
    "pt2": write_pt2,
    "onnx": write_onnx,
    "stablehlo": write_stablehlo,
    "fx-text": write_source,
    "kernelbench": write_problem,
}


def write_program(sample: Sample, name: str, path: Path) -> float | None:
    """Write a sample in a format, load the file and return the t at which it agrees with eager.

    Raises:
        ConversionError: the graph cannot be converted, or its outputs differ.
    """
    if sample.framework != "torch":
        raise ConversionError(
            f"`{name}` is a format for graphs of torch, and `{sample.id}` is of "
            f"{sample.framework}. Convert it to `networkx` or `pyg`."
        )
    if sample.custom_operators:
        raise ConversionError(
            f"`{sample.id}` has custom operators, whose code is not part of a converted graph. "
            "Convert it to `networkx` or `pyg`."
        )
    workload = Workload(sample, weights="inputs" if name == "fx-text" else "parameters")
    try:
        return WRITERS[name](workload, path)
    except GraphNetError:
        raise
    except Exception as error:  # exporters raise any type
        first = next(iter(str(error).strip().splitlines()), "")
        raise ConversionError(f"{type(error).__name__}: {first[:300]}") from error


def _run(path: Path) -> dict[str, Any]:
    """Return the names that a generated file defines; its text contains only known operators."""
    return runpy.run_path(str(path))
