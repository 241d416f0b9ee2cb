"""The same nests on a GPU: mapped to blocks and threads, printed as CUDA C, compiled by NVRTC."""

from .nvrtc import compile_ptx
from .program import CudaKernel, CudaProgram, write_cuda

__all__ = ["CudaKernel", "CudaProgram", "compile_ptx", "write_cuda"]
