"""The compiler `tc`: graphs as tensor comprehensions, the rest with eager."""

from __future__ import annotations

import collections
import importlib.util
import shutil
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from ..compilers.base import Compiler
from ..compilers.options import Option
from .cache import TuningCache
from .graphs.capturing import capture_graph
from .graphs.compiling import GraphKernels, plan_graph
from .graphs.grouping import is_counted
from .graphs.kernels import GroupKernel, KernelCache
from .graphs.lowering import LoweredGroup
from .presets import PRESETS, preset


class TensorComprehensions(Compiler):
    """Turn what the rules cover into definitions, compile those, and leave the rest to eager.

    Every kernel is compared with eager on the example inputs; one that fails to compile or
    disagrees is left out, and counted as left to eager.
    """

    name = "tc"
    devices = ("cpu",)
    package = "islpy"
    extra = "tc"
    option_table: ClassVar[Mapping[str, Option]] = {
        "preset": Option("default", "Options of all kernels.", PRESETS),
        "min_ops": Option(1, "Groups of fewer operators stay with eager."),
        "contractions": Option(
            "auto", "Whether products and convolutions are compiled.", ("auto", "always", "never")
        ),
        "tune_s": Option(0.0, "Seconds of tuning for each kernel; 0 for none."),
        "cache": Option(None, "A file of tuned options to take and to add to."),
        "compile_timeout_s": Option(60.0, "How long the C compiler may take for one kernel."),
    }

    kept: list[tuple[LoweredGroup, GroupKernel]]
    """The groups of the last compilation that have kernels, and those kernels."""

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        if importlib.util.find_spec("islpy") is None:
            return False, "`islpy` is not installed (pip install 'graphnet-datasets[tc]')"
        if shutil.which("gcc") is None and shutil.which("clang") is None:
            return False, "neither `gcc` nor `clang` is installed"
        return True, ""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        first = _form(example_inputs)
        # Kernels are made for sizes: a call of another form has kernels of its own.
        by_form = {first: self._compile(module, example_inputs)}

        @torch.no_grad()
        def run(**inputs: Any) -> Any:
            form = _form(inputs)
            if form not in by_form:
                by_form[form] = self._compile(module, inputs)
            return by_form[form](inputs)

        return run

    def _compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[[Mapping[str, Any]], Any]:
        """Return a callable for inputs of the examples' sizes, dtypes and numbers."""
        captured = capture_graph(self.name, module, example_inputs)
        self.fixed_inputs = captured.flat.fixed_inputs
        flat = captured.flat
        plan = plan_graph(
            captured.module.graph,
            min_ops=self.options["min_ops"],
            contractions=self.options["contractions"],
        )
        path = self.options["cache"]
        cache = KernelCache(
            preset(self.options["preset"]),
            self.options["compile_timeout_s"],
            self.options["tune_s"],
            TuningCache(path) if path else None,
        )
        kernels = GraphKernels(captured, plan, cache)
        compiled = kernels.build(flat.arguments(example_inputs))
        self.note_fallback(plan.fallback_share)
        self._warn(kernels)
        self.kept = kernels.kept
        self.num_kernels = cache.num_kernels

        def run(inputs: Mapping[str, Any]) -> Any:
            arguments = captured.arguments(flat.arguments(inputs))
            return flat.rebuild(captured.outputs(compiled(*arguments), arguments))

        return run

    def _warn(self, kernels: GraphKernels) -> None:
        counts = collections.Counter(
            f"{node.target}: {reason}"
            for node, reason in kernels.plan.refused.items()
            if is_counted(node)
        )
        for text, count in counts.most_common(20):
            self.warnings.append(f"left to eager {count} times: {text}")
        for reason, count in collections.Counter(kernels.failures.values()).most_common(10):
            self.warnings.append(f"{count} groups were left to eager: {reason}")


def _form(inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what kernels are made for: shape and dtype of each tensor, every other value."""
    return tuple(
        (name, value.shape, value.dtype) if isinstance(value, torch.Tensor) else (name, value)
        for name, value in inputs.items()
    )
