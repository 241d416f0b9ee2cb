"""Kernels of Triton on torch tensors, with the interface of CPU kernels."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import KernelCompileError
from ..cuda.kernel import DeviceKernel
from ..language.instance import Instance
from ..options import Options
from .loading import ALIGNMENT, check_installed, compile_triton
from .program import write_triton


class TritonKernel(DeviceKernel):
    """An instance compiled by Triton for a GPU, on torch's current stream and memory.

    Attributes:
        instance: the computation and its sizes.
        options: options of the compilation.
        source: generated Triton code.
        program: the code and its launches.
        schedule: execution order, checked against the dependences.
        seconds: duration of each compilation step.
    """

    def __init__(self, instance: Instance, options: Options | None, device: Any) -> None:
        """Compile the kernel.

        Args:
            device: a `torch.device` of type `cuda`.

        Raises:
            KernelCompileError: Triton finds no GPU, or rejects the code.
            MissingExtraError: Triton is not installed.
        """
        import torch

        begin = time.perf_counter()
        self.instance, self.options = instance, options or Options()
        self.program = write_triton(instance, self.options)
        self.source, self.schedule = self.program.source, self.program.schedule
        written = time.perf_counter()
        self._number = torch.cuda.current_device() if device.index is None else device.index
        self._target = _target(self._number)
        self._variants: dict[bool, list[_Launch]] = {}
        self._buffers = [
            (tensor.name, tensor.num_elements, tensor.dtype.name) for tensor in instance.temporaries
        ]
        self._buffers += [
            (name, count, self.program.types[name].name)
            for name, count in self.program.partials.items()
        ]
        self._names = [tensor.name for tensor in (*instance.inputs, *instance.outputs)]
        self._launches(True)
        self.seconds = {"write": written - begin, "compile": time.perf_counter() - written}

    def launch(self, addresses: Sequence[int]) -> None:
        """Launch the kernel; see `DeviceKernel.launch`."""
        import torch

        with torch.cuda.device(self._number):
            buffers = [
                torch.empty(count, dtype=getattr(torch, kind), device="cuda")
                for _, count, kind in self._buffers
            ]
            places = dict(zip(self._names, addresses, strict=True))
            for (name, _, _), buffer in zip(self._buffers, buffers, strict=True):
                places[name] = buffer.data_ptr()
            is_aligned = all(address % ALIGNMENT == 0 for address in places.values())
            stream = torch.cuda.current_stream().cuda_stream
            for run, names in self._launches(is_aligned):
                run(*[places[name] for name in names], stream=stream)

    def synchronise(self) -> None:
        """Wait until the device has finished."""
        import torch

        torch.cuda.synchronize(self._number)

    def _launches(self, is_aligned: bool) -> list[_Launch]:
        """Return the functions to call and their arguments; compile them on first use."""
        if is_aligned not in self._variants:
            program = self.program
            compiled = compile_triton(
                program.source, program.launches, program.types, self._target, is_aligned=is_aligned
            )
            self._variants[is_aligned] = [
                (kernel[(*launch.grid, 1)], launch.arguments)
                for kernel, launch in zip(compiled, self.program.launches, strict=True)
            ]
        return self._variants[is_aligned]


_Launch = tuple[Callable[..., Any], tuple[str, ...]]


@functools.cache
def _target(device: int) -> Any:
    """Return Triton's target of a device."""
    check_installed()
    import torch
    from triton.runtime import driver  # pyright: ignore[reportMissingImports]

    try:
        with torch.cuda.device(device):
            return driver.active.get_current_target()
    except (RuntimeError, AssertionError) as error:
        raise KernelCompileError(
            f"Triton found no GPU: {error}. Pass tensors on a GPU with a working driver, or CPU "
            "tensors to compile for the processor."
        ) from error
