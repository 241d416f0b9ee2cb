"""AOTInductor: TorchInductor ahead of time, into a shared library that runs without Python."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from .base import Compiler
from .exporting import EXPORT_OPTIONS, export_flat
from .inductor import Inductor
from .options import Option


class AOTInductor(Compiler):
    """Export, compile to a package, load the package."""

    name = "aotinductor"
    option_table: ClassVar[Mapping[str, Option]] = {
        **EXPORT_OPTIONS,
        "freezing": Option(False, "Fold and lay out weights at compile time."),
        "max_autotune": Option(False, "Try several kernels per operator and keep the fastest."),
    }

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        return Inductor.is_available()

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        import torch._inductor

        flat, program = export_flat(
            self.name, module, example_inputs, dynamic=self.options["dynamic"]
        )
        self.fixed_inputs = flat.fixed_inputs
        configs = {name: self.options[name] for name in ("freezing", "max_autotune")}
        with tempfile.TemporaryDirectory(prefix="graphnet-aotinductor-") as directory:
            path = torch._inductor.aoti_compile_and_package(
                program,
                package_path=str(Path(directory) / "model.pt2"),
                inductor_configs={name: True for name, is_set in configs.items() if is_set},
            )
            loaded = torch._inductor.aoti_load_package(path)

        def run(**inputs: Any) -> Any:
            results = loaded(*flat.arguments(inputs))
            return flat.rebuild(results if isinstance(results, (list, tuple)) else [results])

        return run
