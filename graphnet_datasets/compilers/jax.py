"""JAX: an exported program translated by torchax to a JAX function and compiled by XLA."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch._ops import OpOverloadPacket

from .base import Compiler
from .exporting import EXPORT_OPTIONS, check_count, export_flat, quiet_copies
from .flat import FlatModule
from .options import Option


class Jax(Compiler):
    """Translate with torchax, then compile ahead of time for the current sizes."""

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
            _import_torchax()
        except ModuleNotFoundError:
            return False, "`torchax` is not installed (pip install 'graphnet-datasets[jax]')"
        except (AttributeError, ImportError) as error:
            # The import of torchax accesses operators that exist in one version of torch only.
            return False, f"`torchax` does not work with torch {torch.__version__}: {error}"
        return True, ""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        self._compile_for(module, example_inputs)

        def run(**inputs: Any) -> Any:
            compiled = self._compiled.get(_sizes(inputs)) or self._compile_for(module, inputs)
            return compiled(inputs)

        return run

    def num_compilations(self) -> int:
        """Return the number of distinct sizes and numbers compiled for; JAX recompiles for new
        ones.
        """
        return len(self._compiled)

    def _compile_for(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile for the sizes of these inputs and return a callable for inputs of these sizes."""
        jax: Any = importlib.import_module("jax")
        flat, weights, function = export_jax(self.name, module, example_inputs)
        arguments = to_jax(flat.arguments(example_inputs))
        compiled = jax.jit(function).lower(weights, arguments).compile()
        check_count(self.name, flat, len(jax.tree_util.tree_leaves(compiled.out_info)))

        def run(inputs: Mapping[str, Any]) -> Any:
            results = compiled(weights, to_jax(flat.arguments(inputs)))
            jax.block_until_ready(results)
            return flat.rebuild([torch.from_dlpack(array) for array in results])

        self._compiled[_sizes(example_inputs)] = run
        return run


def _sizes(inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the shape of each tensor and the value of each number."""
    return tuple(
        value.shape if isinstance(value, torch.Tensor) else value for value in inputs.values()
    )


def export_jax(
    name: str, module: Callable[..., Any], example_inputs: Mapping[str, Any]
) -> tuple[FlatModule, Any, Callable[..., Any]]:
    """Return the flat module, its weights, and a JAX function of the weights and the inputs.

    Errors call the caller `name`. Numbers keep 64 bits, unlike in JAX by default.
    """
    torchax_export = _import_torchax()
    importlib.import_module("jax").config.update("jax_enable_x64", True)
    flat, program = export_flat(name, module, example_inputs, dynamic=False)
    with quiet_copies():
        weights, function = torchax_export.exported_program_to_jax(program)
    return flat, weights, function


def to_jax(tensors: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    """Return tensors as JAX arrays that share their memory."""
    jax_dlpack: Any = importlib.import_module("jax.dlpack")
    return tuple(jax_dlpack.from_dlpack(tensor.contiguous()) for tensor in tensors)


def _import_torchax() -> Any:
    """Import torchax's translation of exported programs without changing torch's behaviour.

    For its own tensors, which are not used here, the import registers `jax` as torch's accelerator,
    which `torch.compile` then queries for devices. It also disables the fast path of attention,
    which eager uses when it is timed.
    """
    has_fast_path = torch.backends.mha.get_fastpath_enabled()
    try:
        with (
            _replaced(torch.utils, "rename_privateuse1_backend", lambda _: None),
            _replaced(torch, "_register_device_module", lambda *_: None),
            _replaced(OpOverloadPacket, "__getattr__", _find_overload),
        ):
            return importlib.import_module("torchax.export")
    finally:
        torch.backends.mha.set_fastpath_enabled(has_fast_path)


_look_up = OpOverloadPacket.__getattr__


def _find_overload(packet: Any, key: str) -> Any:
    """Return an operator overload, or a string for an overload with named dimensions.

    torchax 0.0.13 lists such overloads in tables of decompositions and of autocast that it builds
    on import. torch 2.13 has no named dimensions, so no program calls them.
    """
    try:
        return _look_up(packet, key)
    except AttributeError:
        if key.startswith("__") or "name" not in key.lower():
            raise
        return f"{packet}.{key}"


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
