"""Collection of the kernels that compilers generate for graphs."""

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
