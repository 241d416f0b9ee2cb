"""The `tc` compiler: graphs as Tensor Comprehensions, the remaining operators in eager."""

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
from .definition import MAX_SPECIALISED
from .graphs.capturing import capture_graph
from .graphs.compiling import GraphKernels, plan_graph
from .graphs.grouping import is_counted
from .graphs.kernels import GroupKernel, KernelCache
from .graphs.lowering import LoweredGroup
from .presets import PRESETS, preset


class TensorComprehensions(Compiler):
    """Compile the supported operators of a graph with Tensor Comprehensions.

    Kernels are C on a CPU and Triton on a GPU.

    Every kernel is compared with eager on the example inputs. A kernel that fails to compile or
    disagrees is dropped, and its operators run in eager and count as fallback.
    """

    name = "tc"
    devices = ("cpu", "cuda")
    package = "islpy"
    extra = "tc"
    option_table: ClassVar[Mapping[str, Option]] = {
        "preset": Option("default", "Options for all kernels.", PRESETS),
        "min_ops": Option(1, "Run smaller groups of operators in eager."),
        "contractions": Option(
            "auto",
            "Whether to compile matrix products and convolutions.",
            ("auto", "always", "never"),
        ),
        "tune_s": Option(0.0, "Tuning time per kernel in seconds; 0 disables tuning."),
        "cache": Option(None, "A file of tuned options to read and extend."),
        "max_specialised": Option(
            MAX_SPECIALISED, "Compile kernels for this many input sizes; the rest share kernels."
        ),
        "compile_timeout_s": Option(60.0, "Time limit of the C compiler per kernel, in seconds."),
    }

    compiled_groups: list[tuple[LoweredGroup, GroupKernel]]
    """Compiled groups of the last compilation with their kernels."""

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
        # Kernels are specialised to the first sizes, and further sizes share general kernels.
        by_form = {first: self._compile(module, example_inputs)}

        @torch.no_grad()
        def run(**inputs: Any) -> Any:
            form = _form(inputs)
            if form not in by_form:
                is_general = len(by_form) >= self.options["max_specialised"]
                by_form[form] = self._compile(module, inputs, is_general=is_general)
            return by_form[form](inputs)

        return run

    def _compile(
        self,
        module: Callable[..., Any],
        example_inputs: Mapping[str, Any],
        *,
        is_general: bool = False,
    ) -> Callable[[Mapping[str, Any]], Any]:
        """Return a callable for inputs with the sizes, dtypes and numbers of the examples."""
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
            is_general=is_general,
        )
        kernels = GraphKernels(captured, plan, cache)
        compiled = kernels.build(flat.arguments(example_inputs))
        self.note_fallback(plan.fallback_share)
        self._warn(kernels)
        self.compiled_groups = kernels.compiled_groups
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
        for message, count in counts.most_common(20):
            self.warnings.append(f"left to eager {count} times: {message}")
        for reason, count in collections.Counter(kernels.failures.values()).most_common(10):
            self.warnings.append(f"{count} groups were left to eager: {reason}")


def _form(inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that kernels are specialised to: shapes, dtypes and non-tensor values."""
    return tuple(
        (name, value.shape, value.dtype) if isinstance(value, torch.Tensor) else (name, value)
        for name, value in inputs.items()
    )
