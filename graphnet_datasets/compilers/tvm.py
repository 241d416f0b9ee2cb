"""Apache TVM: an exported program translated to Relax and compiled by LLVM."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from .base import Compiler
from .exporting import COMPLEX, EXPORT_OPTIONS, check_count, check_dtypes, export_flat, threads
from .options import Option


class Tvm(Compiler):
    """Translate to Relax and lower with the `zero` pipeline, without tuning."""

    name = "tvm"
    package = "apache-tvm"
    module = "tvm"
    extra = "tvm"
    devices = ("cpu",)
    option_table: ClassVar[Mapping[str, Option]] = {
        **EXPORT_OPTIONS,
        "mcpu": Option("native", "The processor to compile for, as LLVM names it."),
        "num_threads": Option(0, "Threads; 0 is as many as torch uses."),
    }

    lowered: Any = None
    """The TVM module from which the last compilation generated code."""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        num_threads = threads(self.options["num_threads"])
        # TVM reads this on import.
        os.environ["TVM_NUM_THREADS"] = str(num_threads)
        tvm: Any = importlib.import_module("tvm")
        relax: Any = importlib.import_module("tvm.relax")
        flat, program = export_flat(
            self.name, module, example_inputs, dynamic=self.options["dynamic"]
        )
        self.fixed_inputs = flat.fixed_inputs
        check_dtypes(self.name, flat, example_inputs, *COMPLEX)
        target = tvm_target(self.options["mcpu"], num_threads)
        graph = self.lower(tvm, to_relax(program), target)
        self.lowered = graph
        machine = relax.VirtualMachine(tvm.compile(graph, target=target), tvm.cpu())
        main = machine["main"]
        check_count(self.name, flat, len(graph["main"].ret_ty.fields))

        def run(**inputs: Any) -> Any:
            arguments = [
                tvm.runtime.from_dlpack(_aligned(tensor)) for tensor in flat.arguments(inputs)
            ]
            return flat.rebuild([torch.from_dlpack(result) for result in main(*arguments)])

        return run

    def lower(self, tvm: Any, graph: Any, target: Any) -> Any:
        """Return `graph` fused and with a schedule for each part, ready for code generation."""
        del tvm
        return lowered(graph, target)


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with TVM's required layout: contiguous and aligned to 64 bytes."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % ALIGNMENT_BYTES == 0 else tensor.clone()


ALIGNMENT_BYTES = 64
PIPELINE = "zero"
"""The TVM passes that every compiler here runs, and after which tuning extracts tasks: legalise,
fold constants, fuse. `DecomposeOpsForInference` is excluded because it converts every batch norm to
inference form, including those that normalise by batch statistics.
"""


def tvm_target(mcpu: str = "native", num_threads: int = 1) -> Any:
    """Return the TVM target for this processor or for LLVM's processor name `mcpu`.

    The target includes the number of threads because schedules depend on it.
    """
    tvm: Any = importlib.import_module("tvm")
    if mcpu == "native":
        mcpu = native_processor()
    return tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": num_threads})


def native_processor() -> str:
    """Return LLVM's name of this machine's processor."""
    tvm: Any = importlib.import_module("tvm")
    return str(tvm.get_global_func("target.llvm_get_system_cpu")())


def to_relax(program: torch.export.ExportedProgram) -> Any:
    """Translate an exported program to a Relax module whose weights are arguments."""
    frontend: Any = importlib.import_module("tvm.relax.frontend.torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frontend.from_exported_program(program)


def lowered(graph: Any, target: Any) -> Any:
    """Return `graph` after the passes of `PIPELINE`, with schedules from the current database."""
    relax: Any = importlib.import_module("tvm.relax")
    with target:
        return relax.get_pipeline(PIPELINE)(graph)
