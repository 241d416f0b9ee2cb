"""Apache TVM: the exported program as Relax, compiled by LLVM."""

from __future__ import annotations

import importlib
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from .base import Compiler
from .exporting import EXPORT_OPTIONS, check_count, export_flat, threads
from .options import Option


class Tvm(Compiler):
    """Translate to Relax and lower it by the `zero` pipeline, which tunes nothing.

    `num_trials` above 0 tunes by MetaSchedule first, one process per candidate: a few seconds per
    trial.
    """

    name = "tvm"
    package = "apache-tvm"
    module = "tvm"
    extra = "tvm"
    devices = ("cpu",)
    option_table: ClassVar[Mapping[str, Option]] = {
        **EXPORT_OPTIONS,
        "num_trials": Option(0, "Candidates to measure by MetaSchedule; 0 tunes nothing."),
        "mcpu": Option("native", "The processor to compile for, as LLVM names it."),
        "num_threads": Option(0, "Threads; 0 is as many as torch uses."),
    }

    lowered: Any = None
    """The module of TVM that the last compilation generated code from."""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        # Read when TVM is imported.
        os.environ["TVM_NUM_THREADS"] = str(threads(self.options["num_threads"]))
        tvm: Any = importlib.import_module("tvm")
        relax: Any = importlib.import_module("tvm.relax")
        frontend: Any = importlib.import_module("tvm.relax.frontend.torch")
        flat, program = export_flat(
            self.name, module, example_inputs, dynamic=self.options["dynamic"]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = frontend.from_exported_program(program)
        target = tvm.target.Target(
            {"kind": "llvm", "mcpu": self._processor(), "num-cores": os.cpu_count() or 1}
        )
        with target, tempfile.TemporaryDirectory() as directory:
            graph = self._pipeline(relax, target, directory)(graph)
        self.lowered = graph
        machine = relax.VirtualMachine(tvm.compile(graph, target=target), tvm.cpu())
        main = machine["main"]
        check_count(self.name, flat, len(graph["main"].ret_ty.fields))

        def run(**inputs: Any) -> Any:
            arguments = [
                tvm.runtime.from_dlpack(tensor.contiguous()) for tensor in flat.arguments(inputs)
            ]
            return flat.rebuild([torch.from_dlpack(result) for result in main(*arguments)])

        return run

    def _processor(self) -> str:
        if self.options["mcpu"] != "native":
            return self.options["mcpu"]
        tvm: Any = importlib.import_module("tvm")
        return str(tvm.get_global_func("target.llvm_get_system_cpu")())

    def _pipeline(self, relax: Any, target: Any, directory: str) -> Callable[[Any], Any]:
        if self.options["num_trials"] == 0:
            return relax.get_pipeline("zero")
        return relax.get_pipeline(
            "static_shape_tuning",
            total_trials=self.options["num_trials"],
            target=target,
            work_dir=directory,
        )
