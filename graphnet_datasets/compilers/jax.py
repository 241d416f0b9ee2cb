"""JAX: the exported program as a JAX function through torchax, compiled by XLA."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from .base import Compiler
from .exporting import EXPORT_OPTIONS, check_count, export_flat
from .options import Option


class Jax(Compiler):
    """Translate through torchax, then lower and compile ahead of time for the shapes at hand."""

    name = "jax"
    package = "jax"
    extra = "jax"
    option_table: ClassVar[Mapping[str, Option]] = {
        "dynamic": Option(EXPORT_OPTIONS["dynamic"].default, "JAX has static shapes.", (False,)),
    }

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        is_installed, reason = super().is_available()
        if not is_installed:
            return is_installed, reason
        try:
            importlib.import_module("torchax.export")
        except ModuleNotFoundError:
            return False, "`torchax` is not installed (pip install 'graphnet-datasets[jax]')"
        except (AttributeError, ImportError) as error:
            # torchax names operators of one version of torch when it is imported.
            return False, f"`torchax` does not work with torch {torch.__version__}: {error}"
        return True, ""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        jax: Any = importlib.import_module("jax")
        torchax_export: Any = importlib.import_module("torchax.export")
        # Without it JAX narrows 64-bit numbers to 32 bits.
        jax.config.update("jax_enable_x64", True)
        flat, program = export_flat(self.name, module, example_inputs, dynamic=False)
        weights, function = torchax_export.exported_program_to_jax(program)
        arguments = self._to_jax(flat.arguments(example_inputs))
        compiled = jax.jit(function).lower(weights, arguments).compile()
        check_count(self.name, flat, len(compiled.out_avals))

        def run(**inputs: Any) -> Any:
            results = compiled(weights, self._to_jax(flat.arguments(inputs)))
            jax.block_until_ready(results)
            return flat.rebuild([torch.from_dlpack(each) for each in results])

        return run

    def _to_jax(self, tensors: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        jax_dlpack: Any = importlib.import_module("jax.dlpack")
        return tuple(jax_dlpack.from_dlpack(tensor.contiguous()) for tensor in tensors)
