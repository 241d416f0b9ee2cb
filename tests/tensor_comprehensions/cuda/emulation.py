"""CUDA C executed on the processor: a block's threads are OpenMP's, a barrier is OpenMP's barrier.

What runs is the generated text itself, so that subscripts, guards, copies and barriers are checked
without a device; speed and memory spaces are not.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphnet_datasets.tensor_comprehensions.cuda import CudaProgram
from graphnet_datasets.tensor_comprehensions.language import Instance

_HEAD = """\
#include <math.h>
#include <omp.h>
typedef struct { int x, y, z; } dim3;
static _Thread_local dim3 threadIdx;
static dim3 blockIdx, blockDim, gridDim;
#define __device__
#define __forceinline__ inline __attribute__((always_inline, unused))
#define __shared__ static
#define __ldg(p) (*(p))
#define __syncthreads() _Pragma("omp barrier")
#define rsqrtf(x) (1 / sqrtf(x))
static inline float __int_as_float(int i) { union { int i; float f; } v = {i}; return v.f; }
static inline double __longlong_as_double(long long i) {
  union { long long i; double f; } v = {i};
  return v.f;
}
"""


def run(
    instance: Instance, program: CudaProgram, inputs: Sequence[np.ndarray], folder: Path
) -> list[np.ndarray]:
    """Return the outputs of a program; blocks run one after the other."""
    source = program.source
    for name in ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t"):
        assert f" {name};" in source
    text = re.sub(r"(?m)^typedef .*_t;$", "", source)
    text = re.sub(r"(?m)^#define (U?INT\d+_(C|MIN)|__builtin_).*$", "", text)
    text = re.sub(r'extern "C" __global__ void __launch_bounds__\(\d+\)', "static void", text)
    calls = []
    arguments = ", ".join(f"a[{place}]" for place in range(len(instance.tensors)))
    for kernel in program.kernels:
        count = kernel.block[0] * kernel.block[1] * kernel.block[2]
        x, y, z = kernel.grid
        calls.append(
            f"blockDim = (dim3){{{kernel.block[0]}, {kernel.block[1]}, {kernel.block[2]}}};\n"
            f"gridDim = (dim3){{{x}, {y}, {z}}};\n"
            f"for (int b = 0; b < {x * y * z}; ++b) {{\n"
            f"  blockIdx = (dim3){{b % {x}, b / {x} % {y}, b / {x * y}}};\n"
            f'  _Pragma("omp parallel num_threads({count})")\n'
            "  {\n"
            "    int t = omp_get_thread_num();\n"
            "    threadIdx = (dim3){t % blockDim.x, t / blockDim.x % blockDim.y,"
            " t / (blockDim.x * blockDim.y)};\n"
            f"    {kernel.name}({arguments});\n"
            "  }\n}\n"
        )
    main = f"void run(void **a) {{\n{''.join(calls)}}}\n"
    (folder / "kernel.c").write_text("#include <stdint.h>\n" + _HEAD + text + main)
    subprocess.run(
        ["gcc", "-O1", "-w", "-shared", "-fPIC", "-fopenmp", "-o", "kernel.so", "kernel.c", "-lm"],
        cwd=folder,
        check=True,
    )
    given = iter(inputs)
    arrays = [
        next(given) if each.role == "input" else np.zeros(each.shape, each.dtype.name)
        for each in instance.tensors
    ]
    pointers = (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))
    ctypes.CDLL(str(folder / "kernel.so")).run(pointers)
    return [
        array
        for tensor, array in zip(instance.tensors, arrays, strict=True)
        if tensor.role == "output"
    ]
