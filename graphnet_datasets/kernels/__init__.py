"""What compilers generate for graphs, collected as text."""

from .collecting import KERNEL_LIMITS, GraphKernels, KernelReport, collect_kernels
from .generated import GeneratedKernel, Generation
from .generators import generator_names

__all__ = [
    "KERNEL_LIMITS",
    "GeneratedKernel",
    "Generation",
    "GraphKernels",
    "KernelReport",
    "collect_kernels",
    "generator_names",
]
