"""GPU backend: nests mapped to blocks and threads, printed as CUDA C, compiled by NVRTC."""

from .kernel import GpuKernel, torch_kernel
from .nvrtc import compile_ptx
from .program import CudaKernel, CudaProgram, write_cuda

__all__ = [
    "CudaKernel",
    "CudaProgram",
    "GpuKernel",
    "compile_ptx",
    "torch_kernel",
    "write_cuda",
]
