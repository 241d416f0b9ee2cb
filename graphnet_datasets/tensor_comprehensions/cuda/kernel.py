"""A kernel on a GPU, with the surface of one for the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..language.instance import Instance, Tensor
from ..options import Options
from .driver import Module, architecture
from .nvrtc import compile_ptx
from .program import write_cuda


class GpuKernel:
    """An instance compiled for a GPU.

    Attributes:
        instance: what it computes, for which sizes.
        options: what it was compiled with.
        source: the generated CUDA C.
        ptx: what NVRTC made of it.
        schedule: the order of execution, checked against the dependences.
        seconds: what each step of compiling took.
    """

    threads = 1
    """Threads of the processor that a call uses."""

    def __init__(
        self,
        instance: Instance,
        options: Options | None,
        device: int,
        allocate: Callable[[Tensor], tuple[Any, int]],
        stream: Callable[[], int],
    ) -> None:
        """Compile and load it.

        Args:
            device: the number of the GPU.
            allocate: returns memory on the device for a temporary, and its address. The memory
                must outlive what the stream still does with it, as torch's does.
            stream: returns the stream to launch on.

        Raises:
            KernelCompileError: there is no driver, or NVRTC or the driver refuses the code.
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
        """Launch on memory at the given addresses: the inputs', then the outputs', in order.

        Nothing is checked, and it returns before the device is done.
        """
        held = [self._allocate(each) for each in self.instance.temporaries]
        everything = [*addresses, *(address for _, address in held)]
        stream = self._stream()
        for each in self.kernels:
            self._module.launch(each.name, each.grid, each.block, everything, stream)

    def times_ms(self, addresses: Sequence[int], num_runs: int, num_warm_up: int) -> list[float]:
        """Launch some times and return how long each took, until the device was done."""
        times = []
        for run in range(num_warm_up + num_runs):
            self._module.synchronise()
            begin = time.perf_counter()
            self.launch(addresses)
            self._module.synchronise()
            if run >= num_warm_up:
                times.append((time.perf_counter() - begin) * 1e3)
        return times

    def __repr__(self) -> str:
        shapes = ", ".join(f"{each.name}{list(each.shape)}" for each in self.instance.inputs)
        return f"GpuKernel({self.instance.name}: {shapes})"


def torch_kernel(instance: Instance, options: Options | None, device: Any) -> GpuKernel:
    """Return a kernel that runs on torch's current stream and takes memory from its allocator.

    Args:
        device: a `torch.device` of the type cuda.
    """
    import torch

    number = torch.cuda.current_device() if device.index is None else device.index

    def allocate(tensor: Tensor) -> tuple[Any, int]:
        kind = getattr(torch, tensor.dtype.name)
        made = torch.empty(tensor.shape, dtype=kind, device=f"cuda:{number}")
        return made, made.data_ptr()

    return GpuKernel(
        instance,
        options,
        number,
        allocate,
        lambda: torch.cuda.current_stream(number).cuda_stream,
    )
