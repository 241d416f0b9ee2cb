"""Torch tensor operations of the benchmark worker: copying, seeding, comparing and exporting."""

from __future__ import annotations

import contextlib
import copy
import importlib
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..outputs import MAX_EXCERPT, SCALARS, OutputTypeError, excerpt_of, leaves, write_leaves
from ..runtime import ROW_WORDS, SCRAMBLE
from .building.deferred import settle
from .device_clock import CudaEventClock
from .peaks import cache_bytes
from .watching import watched

_DTYPE_PREFIX = "torch."
_SEEDED_APART = ("cuda", "xpu")
"""Device types with random generators of their own."""


_SELDOM = ("torch._dynamo", "torch.export._trace")
"""Modules imported for fake tensors, or when a size is known only at run time."""

_ORDERS = random.SystemRandom()
"""Draws from the system, because forked processes would share a generator's state."""


class TorchRuntime:
    """Torch on one device, with a fixed number of threads and without gradients."""

    def __init__(self, device: str, num_threads: int) -> None:
        self.device = torch.device(device)
        torch.set_num_threads(num_threads)
        torch.set_grad_enabled(False)

    def make_clock(self) -> CudaEventClock | None:
        """Return a clock of CUDA events, or None on other devices."""
        return CudaEventClock(self.device) if self.device.type == "cuda" else None

    def make_evictor(self) -> Callable[[], None] | None:
        """Return a function that overwrites twice the L2 cache of a GPU, or None on a CPU."""
        size = cache_bytes(str(self.device))
        if size is None:
            return None
        buffer = torch.zeros(2 * size // 8, dtype=torch.int64, device=self.device)

        def evict() -> None:
            buffer.add_(1)

        return evict

    def seed(self, seed: int) -> None:
        """Seed the device's generators, so that random operators draw the same numbers in each arm.

        `torch.manual_seed` also seeds other device types lazily. Each deferred seed records a stack
        trace, which would take 0.1 ms before every call.
        """
        torch.default_generator.manual_seed(seed)
        if self.device.type in _SEEDED_APART:
            getattr(torch, self.device.type).manual_seed_all(seed)

    def synchronize(self) -> None:
        """Wait until all work on the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor with the same strides; return other values unchanged."""
        return value.clone() if isinstance(value, torch.Tensor) else value

    def clone_outputs(self, outputs: Any) -> Any:
        """Return a copy of nested outputs."""
        if type(outputs) in (list, tuple):
            return type(outputs)(self.clone_outputs(output) for output in outputs)
        if type(outputs) is dict:
            return {key: self.clone_outputs(output) for key, output in outputs.items()}
        return self.clone(outputs)

    def copy_module(self, module: Any, count: int, *, is_separate: bool) -> list[Any]:
        """Return modules with separate graphs and, if `is_separate`, separate weight memory.

        A compiler may rewrite its graph, and its writes to weights must not affect eager. Memory is
        allocated weight by weight for all copies in random order. Without `is_separate`, weights
        are separate tensors that share memory. A plain module is itself the first copy, since
        copying and printing a graph takes as long as building it.
        """
        settle(module)  # the first copy is timed and must run the code printed by `torch.fx`
        is_plain = type(module).__base__ is torch.fx.GraphModule
        own = [module] if is_plain and count else []
        own += [
            torch.fx.GraphModule(module, copy.deepcopy(module.graph))
            for _ in range(count - len(own))
        ]
        copies = [_Copy(module_copy, is_separate) for module_copy in own]
        # Keep the tensors alive, because copies are looked up by tensor id.
        originals = self.tensors_of(module)
        for submodules in zip(
            *(module_copy.module.modules() for module_copy in copies), strict=True
        ):
            for kind in ("_parameters", "_buffers"):
                for name, tensor in list(getattr(submodules[0], kind).items()):
                    for place in _ORDERS.sample(range(count), count):
                        if tensor is not None:
                            weight = copies[place].weight(tensor)
                            getattr(submodules[place], kind)[name] = weight
        del originals
        return [module_copy.module for module_copy in copies]

    def watch(self, module: Any) -> Mapping[str, Any]:
        """Return, by name, everything besides inputs and weights that affects how eager runs."""
        return watched(module)

    def tensors_of(self, module: Any) -> dict[str, torch.Tensor]:
        """Return the weights of a module by name."""
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def is_equal(self, left: Any, right: Any) -> bool:
        """Return whether two tensors have the same bits."""
        if not isinstance(left, torch.Tensor):
            return True
        return bool(torch.equal(_as_bytes(left), _as_bytes(right)))

    def checksum(self, tensor: Any) -> int:
        """Return a checksum of a tensor's elements and their order.

        Each word is weighted by its row and by its column, so two sums detect permuted elements
        without temporary memory of the tensor's size.
        """
        data = _as_bytes(tensor)
        words = data[: data.numel() // 8 * 8].view(torch.int64)
        rows = words[: words.numel() // ROW_WORDS * ROW_WORDS].view(-1, ROW_WORDS)
        parts = rows.sum(0), words[rows.numel() :], data[words.numel() * 8 :].long(), rows.sum(1)
        return sum(_weighted_sum(part, ROW_WORDS * place) for place, part in enumerate(parts))

    def restore(self, tensor: torch.Tensor, pristine: torch.Tensor) -> None:
        """Write the saved elements back into `tensor`."""
        tensor.data.copy_(pristine)

    def poison(
        self, outputs: Any, protected: set[int], spared: frozenset[int] = frozenset()
    ) -> None:
        """Overwrite outputs that are no longer needed, so that stale memory contains no results.

        `protected` contains storage addresses that must not be overwritten (see `storages`). The
        outputs at the indices `spared` are not overwritten either.
        """
        tensors = [
            (place, leaf)
            for place, leaf in enumerate(leaves(outputs))
            if type(leaf) is torch.Tensor and leaf.layout is torch.strided
        ]
        protected_storages = protected | self.storages(
            *(leaf for place, leaf in tensors if place in spared)
        )
        for _, leaf in tensors:
            if leaf.untyped_storage().data_ptr() not in protected_storages:
                torch.empty(0, dtype=torch.uint8, device=leaf.device).set_(
                    leaf.untyped_storage()
                ).fill_(0xFF)

    def storages(self, *tensors: Any) -> set[int]:
        """Return the storage addresses of the tensors."""
        return {
            tensor.untyped_storage().data_ptr()
            for tensor in tensors
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided
        }

    def num_bytes(self, *tensors: Any) -> int:
        """Return the total bytes of the tensors' elements."""
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return their dtypes, shapes and positions.

        Raises:
            OutputTypeError: If an output is not a plain dense tensor or a number.
        """
        return write_leaves(outputs, path, _describe)

    def excerpt(
        self, outputs: Any, start: int | None, most: int = MAX_EXCERPT
    ) -> list[tuple[str, list[int], Any]]:
        """Return the dtype, shape and a copied excerpt of the elements of each output.

        Raises:
            OutputTypeError: If an output is not a plain dense tensor or a number.
        """
        output_leaves = list(leaves(outputs))
        excerpts = []
        for index, leaf in enumerate(output_leaves):
            tensor = _plain(leaf, index)
            flat = tensor.detach().reshape(-1)[
                excerpt_of(tensor.numel(), len(output_leaves), start, most)
            ]
            elements = _as_bytes(flat.clone()).numpy()
            excerpts.append((_dtype_name(tensor), list(tensor.shape), elements))
        return excerpts

    def digest(self, outputs: Any) -> list[tuple[str, tuple[int, ...], int, bool]]:
        """Return the dtype, shape, checksum and finiteness of each output."""
        return [
            (_dtype_name(tensor), tuple(tensor.shape), self.checksum(tensor), _is_finite(tensor))
            for tensor in (_plain(leaf, index) for index, leaf in enumerate(leaves(outputs)))
        ]

    def count_compilations(self) -> Callable[[], int]:
        """Count frames of `torch.compile`, traces, scripts and exports from now on."""
        from .compilations import count_compilations

        return count_compilations()

    def reset_peak_memory(self) -> None:
        """Reset the device's peak memory counter."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def capture(self, call: Callable[..., Any], make_arguments: Callable[[], Any]) -> Any:
        """Return the call captured in a CUDA graph for replay."""
        from .cuda_graphs import CapturedCall

        return CapturedCall(call, make_arguments, self.device)

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, or None on a CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return None


def no_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` wrapped in the gradient mode of a run."""
    return torch.no_grad()(function)


def _describe(leaf: Any, index: int) -> tuple[str, list[int], Any]:
    tensor = _plain(leaf, index)
    return _dtype_name(tensor), list(tensor.shape), _as_bytes(tensor).numpy()


def _plain(leaf: Any, index: int) -> torch.Tensor:
    if type(leaf) in SCALARS:
        return torch.tensor(leaf, dtype=getattr(torch, SCALARS[type(leaf)]))
    # A subclass could compute its elements lazily, after timing has stopped.
    if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
        raise OutputTypeError(
            f"Output {index} is a `{type(leaf).__module__}.{type(leaf).__qualname__}`, "
            "not a plain tensor."
        )
    if leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_meta:
        raise OutputTypeError(
            f"Output {index} is a tensor of layout {leaf.layout} on {leaf.device}. Outputs must be "
            "dense tensors with elements."
        )
    return leaf


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix(_DTYPE_PREFIX)


def _is_finite(tensor: torch.Tensor) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.element_size() == 1:
        return True  # some 8-bit dtypes have no infinity, and `isfinite` does not support them
    return bool(torch.isfinite(tensor).all())


class _Copy:
    """A copy of a module with its own weights."""

    def __init__(self, module: torch.fx.GraphModule, is_separate: bool) -> None:
        self.module, self._is_separate = module, is_separate
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._weights: dict[int, torch.Tensor] = {}

    def weight(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the copy of a weight; weights that share memory do so in the copy as well."""
        if id(tensor) not in self._weights:
            self._weights[id(tensor)] = self._copy(tensor)
        return self._weights[id(tensor)]

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        plain = tensor.detach()
        if self._is_separate and plain.layout is torch.strided and not plain.is_quantized:
            storage = plain.untyped_storage()
            if storage.data_ptr() not in self._storages:
                self._storages[storage.data_ptr()] = storage.clone()
            plain = torch.empty(0, dtype=plain.dtype, device=plain.device).set_(
                self._storages[storage.data_ptr()],
                plain.storage_offset(),
                plain.shape,
                plain.stride(),
            )
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(plain, requires_grad=tensor.requires_grad)
        return plain


def _weighted_sum(words: torch.Tensor, start: int) -> int:
    """Return the sum of int64 words, each times a scrambled odd weight, modulo 2^64."""
    numbers = torch.arange(start, start + words.numel(), device=words.device)
    weights = (numbers * SCRAMBLE) ^ ((numbers * SCRAMBLE) >> 29)
    return int((words * (weights * SCRAMBLE | 1)).sum())


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return plain.reshape(-1).view(torch.uint8)


def make_runtime(device: str, num_threads: int) -> TorchRuntime:
    """Return the torch runtime for a device."""
    return TorchRuntime(device, num_threads)


def import_all(*, with_compiler: bool = False, with_fakes: bool = False) -> tuple[str, ...]:
    """Import common modules in a process that forks its jobs, without touching a device.

    Returns the modules that only some jobs import. They are used by fake tensors and regions, take
    as long to import as torch itself, and are not needed for common operators (`walking.rules`).

    `with_compiler` also imports the modules of `torch.compile`, which takes as long as the rest.
    `with_fakes` also imports the modules of fake tensors, which most cut or transformed graphs
    need.
    """
    if with_fakes:
        importlib.import_module("torch._dynamo")
    if with_compiler:
        importlib.import_module("torch._inductor.compile_fx")  # once instead of in every run
        _find_cuda_driver()

    from . import materialize, shapes, tensors  # noqa: F401

    assert not torch.cuda.is_initialized()  # noqa: S101 (a forked process could not use the device)
    return _SELDOM


def _find_cuda_driver() -> None:
    """Let Triton find the library of the CUDA driver, for which it runs a program.

    Confined jobs may not start that program; they inherit the result, which Triton caches.
    """
    if torch.backends.cuda.is_built():
        with contextlib.suppress(Exception):  # without Triton or a driver, jobs report the problem
            importlib.import_module("triton.backends.nvidia.driver").libcuda_dirs()


def count_gpus() -> int | None:
    """Return the number of GPUs available to torch, or None if it is built without CUDA."""
    return torch.cuda.device_count() if torch.backends.cuda.is_built() else None
