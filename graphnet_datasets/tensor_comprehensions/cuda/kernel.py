"""Kernels on a GPU, with the interface of CPU kernels."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..language.instance import Instance, Tensor
from ..options import Options
from .driver import Module, architecture
from .nvrtc import compile_ptx
from .program import write_cuda


class DeviceKernel(abc.ABC):
    """An instance compiled for a GPU, by NVRTC or Triton."""

    threads = 1
    """Number of CPU threads used by a call."""

    instance: Instance

    @abc.abstractmethod
    def launch(self, addresses: Sequence[int]) -> None:
        """Launch the kernel on raw memory addresses: the inputs, then the outputs, in order.

        Nothing is checked, and the call returns before the device has finished.
        """

    @abc.abstractmethod
    def synchronise(self) -> None:
        """Wait until the device has finished."""

    def times_ms(self, addresses: Sequence[int], num_runs: int, num_warm_up: int) -> list[float]:
        """Time repeated launches, each until the device has finished."""
        times = []
        for run in range(num_warm_up + num_runs):
            self.synchronise()
            begin = time.perf_counter()
            self.launch(addresses)
            self.synchronise()
            if run >= num_warm_up:
                times.append((time.perf_counter() - begin) * 1e3)
        return times

    def __repr__(self) -> str:
        shapes = ", ".join(f"{tensor.name}{list(tensor.shape)}" for tensor in self.instance.inputs)
        return f"{type(self).__name__}({self.instance.name}: {shapes})"


class GpuKernel(DeviceKernel):
    """An instance compiled for a GPU by NVRTC.

    Attributes:
        instance: the computation and its sizes.
        options: options of the compilation.
        source: generated CUDA C.
        ptx: PTX compiled by NVRTC.
        schedule: execution order, checked against the dependences.
        seconds: duration of each compilation step.
    """

    def __init__(
        self,
        instance: Instance,
        options: Options | None,
        device: int,
        allocate: Callable[[Tensor], tuple[Any, int]],
        stream: Callable[[], int],
    ) -> None:
        """Compile and load the kernel.

        Args:
            device: index of the GPU.
            allocate: return device memory for a temporary, and its address. The memory must stay
                valid until the stream has finished with it, as torch's allocator guarantees.
            stream: return the stream to launch on.

        Raises:
            KernelCompileError: there is no driver, or NVRTC or the driver rejects the code.
            MissingExtraError: NVRTC is not installed.
        """
        begin = time.perf_counter()
        self.instance, self.options = instance, options or Options()
        self._allocate, self._stream = allocate, stream
        target = architecture(device)
        program = write_cuda(instance, self.options)
        written = time.perf_counter()
        self.source, self.schedule, self.kernels = program.source, program.schedule, program.kernels
        self.ptx = compile_ptx(program.source, target)
        self.seconds = {"write": written - begin, "compile": time.perf_counter() - written}
        self._module = Module(self.ptx, device)

    def launch(self, addresses: Sequence[int]) -> None:
        """Launch the kernel; see `DeviceKernel.launch`."""
        allocations = [self._allocate(tensor) for tensor in self.instance.temporaries]
        all_addresses = [*addresses, *(address for _, address in allocations)]
        stream = self._stream()
        for kernel in self.kernels:
            self._module.launch(kernel.name, kernel.grid, kernel.block, all_addresses, stream)

    def synchronise(self) -> None:
        """Wait until the device has finished."""
        self._module.synchronise()


def torch_kernel(instance: Instance, options: Options | None, device: Any) -> GpuKernel:
    """Return a kernel that uses torch's current stream and memory allocator.

    Args:
        device: a `torch.device` of type `cuda`.
    """
    import torch

    number = torch.cuda.current_device() if device.index is None else device.index

    def allocate(tensor: Tensor) -> tuple[Any, int]:
        kind = getattr(torch, tensor.dtype.name)
        buffer = torch.empty(tensor.shape, dtype=kind, device=f"cuda:{number}")
        return buffer, buffer.data_ptr()

    return GpuKernel(
        instance,
        options,
        number,
        allocate,
        lambda: torch.cuda.current_stream(number).cuda_stream,
    )
