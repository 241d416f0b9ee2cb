"""IREE: an exported program imported by iree-turbine and compiled by LLVM for the CPU."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch

from .base import Compiler
from .exporting import COMPLEX, EXPORT_OPTIONS, check_dtypes, export_flat, spell_out_sums, threads
from .options import Option

_THREADS_FLAG = "--task_topology_max_group_count"


class Iree(Compiler):
    """Compile ahead of time for this processor and run on IREE's task executor."""

    name = "iree"
    package = "iree-base-compiler"
    module = "iree"
    extra = "iree"
    devices = ("cpu",)
    option_table: ClassVar[Mapping[str, Option]] = {
        **EXPORT_OPTIONS,
        "num_threads": Option(0, "Threads; 0 is as many as torch uses."),
    }

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        for part in ("iree", "iree.compiler", "iree.runtime", "iree.turbine"):
            if importlib.util.find_spec(part) is None:
                return False, f"`{part}` is not installed (pip install 'graphnet-datasets[iree]')"
        return True, ""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            aot: Any = importlib.import_module("iree.turbine.aot")
        compiler: Any = importlib.import_module("iree.compiler")
        runtime: Any = importlib.import_module("iree.runtime")
        flat, program = export_flat(
            self.name, module, example_inputs, dynamic=self.options["dynamic"]
        )
        self.fixed_inputs = flat.fixed_inputs
        check_dtypes(self.name, flat, example_inputs, *COMPLEX)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = program.run_decompositions(_decompositions())
            spell_out_sums(program.graph_module)
            exported = aot.export(program)
        binary = compiler.compile_str(
            str(exported.mlir_module),
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false"],
        )
        num_threads = threads(self.options["num_threads"])
        runtime.flags.parse_flags(f"{_THREADS_FLAG}={num_threads}")
        config = runtime.Config("local-task")
        loaded = runtime.VmModule.copy_buffer(config.vm_instance, binary)
        main = runtime.load_vm_module(loaded, config).main

        def run(**inputs: Any) -> Any:
            results = main(*(_to_numpy(tensor) for tensor in flat.arguments(inputs)))
            several = results if isinstance(results, (list, tuple)) else [results]
            return flat.rebuild(
                [
                    _to_torch(result.to_host(), dtype)
                    for result, dtype in zip(several, flat.dtypes, strict=True)
                ]
            )

        return run


def _decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the core ATen decompositions, which remove in-place operators, and one for batch norm.

    IREE 3.13 cannot compile the operator that core ATen uses for batch norm.
    """
    batch_norm = torch.ops.aten._native_batch_norm_legit_no_training.default
    return {**torch.export.default_decompositions(), batch_norm: _batch_norm}


def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    momentum: float,  # noqa: ARG001 - part of the operator's signature
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = (1, -1) + (1,) * (x.dim() - 2)
    scale = torch.rsqrt(variance + eps)
    scale = scale if weight is None else scale * weight
    result = (x - mean.reshape(shape)) * scale.reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    unused = x.new_empty((0,))
    return result.to(x.dtype), unused, unused


def _to_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype is torch.bfloat16:
        bfloat16 = importlib.import_module("ml_dtypes").bfloat16
        return tensor.contiguous().view(torch.int16).numpy().view(bfloat16)
    return tensor.contiguous().numpy()


def _to_torch(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """Copy an array from memory owned by the runtime to a tensor of the graph's dtype.

    IREE programs use signless integers, which arrive as signed integers of the same width.
    """
    if array.dtype.kind == "i" and not dtype.is_signed and dtype is not torch.bool:
        return torch.from_numpy(array.copy()).view(dtype)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())
