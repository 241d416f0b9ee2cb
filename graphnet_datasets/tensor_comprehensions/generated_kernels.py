"""Kernels of the `tc` compiler: C generated from Tensor Comprehensions."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from ..errors import TransformError
from ..frameworks import make_inputs, materialize
from ..kernels.generated import GeneratedKernel, Generation
from ..sample import Sample
from .compiler import TensorComprehensions
from .triton.kernel import TritonKernel


def generate(sample: Sample, options: Mapping[str, Any], device: str) -> Generation:
    """Compile a sample with `tc` and collect the C or Triton source of its groups.

    The reported operators are the ATen operators that the graph is decomposed into.

    Raises:
        TransformError: `tc` covers none of the operators, or rejects the sample.
        CompilerError: `tc` has no such option.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    compiler = TensorComprehensions(options)
    module = materialize(sample, device=device, allow_unchecked_operators=True)
    inputs = make_inputs(sample, device=device)
    with torch.no_grad():
        run = compiler.compile(module, inputs)
    if not compiler.compiled_groups:
        reason = compiler.warnings[0] if compiler.warnings else "none of its operators is covered"
        raise TransformError(
            f"`tc` generates no kernel for `{sample.id}`: {reason}.",
            reason="`tc` covers none of its operators",
        )
    kernels = []
    for group, group_kernel in compiler.compiled_groups:
        kernel = group_kernel.kernel
        tensors = [*kernel.instance.inputs, *kernel.instance.outputs]
        launch = {
            "threads": kernel.threads,
            "arguments": [
                {"name": tensor.name, "dtype": tensor.dtype.name, "shape": list(tensor.shape)}
                for tensor in tensors
            ],
            "definition": group.source,
        }
        targets = tuple(str(node.target) for node in group.nodes if node.op == "call_function")
        language = "triton" if isinstance(kernel, TritonKernel) else "c"
        kernels.append(GeneratedKernel("tc_kernel", language, kernel.source, targets, None, launch))
    return Generation(tuple(kernels), (), functools.partial(run, **inputs))
