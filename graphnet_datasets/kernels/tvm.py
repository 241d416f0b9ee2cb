"""Kernels of TVM: TensorIR before code generation by LLVM."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from ..compilers.tvm import Tvm
from ..errors import TransformError
from ..frameworks import make_inputs, materialize
from ..sample import Sample
from .generated import GeneratedKernel, Generation


def generate(sample: Sample, options: Mapping[str, Any], device: str) -> Generation:
    """Compile a sample with TVM and collect the TensorIR of its functions.

    TVM does not report the operators of a function; the names of functions consist of Relax names.

    Raises:
        TransformError: TVM cannot compile the sample.
        CompilerError: TVM has no such option.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    compiler = Tvm(options)
    module = materialize(sample, device=device, allow_unchecked_operators=True)
    inputs = make_inputs(sample, device=device)
    try:
        with torch.no_grad():
            run = compiler.compile(module, inputs)
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise TransformError(
            f"TVM cannot compile `{sample.id}`: {lines[-1][:300]}",
            reason=f"TVM cannot compile the graph ({type(error).__name__})",
        ) from error
    tir = _tir()
    kernels = []
    for variable, function in compiler.lowered.functions.items():
        if isinstance(function, tir.PrimFunc):
            name = str(variable.name_hint)
            launch = {"parameters": [str(parameter) for parameter in function.params]}
            kernels.append(
                GeneratedKernel(name, "tensorir", function.script(), (name,), None, launch)
            )
    kernels.sort(key=lambda kernel: kernel.entry)
    return Generation(tuple(kernels), (), functools.partial(run, **inputs))


def _tir() -> Any:
    try:
        from tvm import tirx  # since TVM 0.27
    except ImportError:
        from tvm import tir  # pyright: ignore[reportAttributeAccessIssue]

        return tir
    return tirx
